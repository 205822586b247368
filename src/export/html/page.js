'use strict';
// The page reads without this. It adds buttons, and opens what a link leads to.
(() => {
  const actions = document.getElementById('actions');
  const folds = () => document.querySelectorAll('main details');
  let failure = -1;

  const reveal = (element) => {
    for (let up = element; up; up = up.parentElement) {
      if (up.tagName === 'DETAILS') up.open = true;
    }
    element.scrollIntoView({ block: 'start' });
  };

  const buttons = {
    open: () => folds().forEach((fold) => { fold.open = true; }),
    close: () => folds().forEach((fold) => { fold.open = false; }),
    diffs: () => document.querySelectorAll('main .call:has(.diff)').forEach((call) => {
      for (let up = call; up; up = up.parentElement) {
        if (up.tagName === 'DETAILS') up.open = true;
      }
    }),
    failure: () => {
      const failures = document.querySelectorAll('main .call.bad');
      if (failures.length === 0) return;
      failure = (failure + 1) % failures.length;
      reveal(failures[failure]);
      failures[failure].querySelector('summary').focus({ preventScroll: true });
    },
  };

  actions.addEventListener('click', (event) => {
    const button = event.target.closest('button');
    if (button) buttons[button.dataset.do]();
  });
  actions.hidden = false;

  const follow = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target && target.closest('main details')) reveal(target);
  };
  addEventListener('hashchange', follow);
  follow();
})();
