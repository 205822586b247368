//! The machine: programs that run others, builtins, processes, services,
//! editors, debuggers and databases.

use super::{BASE, CLOSED, Covers, Guard, READER};
use crate::policy::checks::{data, script};

/// The rows.
pub(crate) const ROWS: &[Guard] = &[
    Guard {
        programs: "env, xargs, parallel, timeout, nice, ionice, nohup, stdbuf, setsid, setarch, \
                   chrt, taskset, time, watch, entr, flock, script, strace, ltrace, gdb, gdbserver, \
                   lldb, perf, valgrind, rr, unshare, nsenter, chroot, systemd-run, sudo, doas, su, \
                   runuser, setpriv, pkexec, busybox, toybox, start-stop-daemon, at, batch, \
                   screen, tmux, firejail, bwrap, proot, fakeroot, faketime, unbuffer, \
                   run-parts, ld.so, ld-linux-x86-64.so, ld-linux.so, rustup, direnv, dotenv, mise, \
                   asdf, hyperfine, cargo-watch, nodemon, watchexec, concurrently, \
                   dbus-run-session, xvfb-run, caffeinate, ip, chronic, ifne, pee, sem, rlwrap, \
                   ssh-agent, prlimit, numactl, choom, uclampset, linux32, linux64, i386, x86_64, \
                   cgexec, chpst, catchsegv, cross-env, cross-env-shell, dotenvx, nyc, c8, \
                   npm-run-all, run-s, run-p, pueue, tsp, dumb-init, tini, gosu, su-exec, runcon, sg, \
                   newgrp, capsh, mispipe, daemonize, daemon, softlimit, setlock, envdir, \
                   envuidgid, setuidgid, cpulimit, torsocks, proxychains, aa-exec, schedtool, \
                   tcpdump, tshark, wine, qemu, coproc, arch, op, doppler, chamber, aws-vault, \
                   honcho, foreman, overmind, forego, ldd, ltrace, uftrace, bpftrace, dtrace, \
                   stap, trace-cmd, heaptrack, gprofng, ts-node-dev, onchange, chokidar, reflex, air, \
                   modd, fswatch, inotifywait, incron, zsh-defer, sponge, vipe, lockfile, lockrun, \
                   s6-setuidgid, execlineb, fdmove, xdg-open, open, gio, gapplication, sensible-browser, \
                   sensible-pager, sensible-editor, see, edit, run-mailcap, x-terminal-emulator, xterm, \
                   nix-shell, guix, distrobox, toolbox, multipass, lxc, lxd, machinectl, systemd-nspawn, \
                   debootstrap, apptainer, singularity",
        why: "it runs the program that its arguments name",
        ..CLOSED
    },
    Guard {
        programs: "., source, eval, exec, command, builtin, trap, alias, unalias, enable, complete, \
                   compgen, compopt, bind, hash, history, fc, let, declare, typeset, local, export, \
                   readonly, unset, read, mapfile, readarray, getopts, set, shopt, wait, kill, \
                   killall, pkill, skill, snice, suspend, ulimit, umask, disown",
        why: "it runs, redefines or stops other commands",
        ..CLOSED
    },
    Guard {
        programs: "mlr, duckdb, fx, vi, vim, nvim, view, vimdiff, rvim, gvim, ex, ed, red, emacs, emacsclient, nano, pico, \
                   rnano, micro, helix, hx, kak, joe, mcedit, jed, code, subl, info, pinfo, mail, mailx, \
                   mutt, sendmail, ftp, lftp, sftp, gpg, gpg2, mongo, mongosh, ghci, irb, pry, scala, \
                   jshell, dc, m4, gs, gsc, magick, convert, mogrify, identify, montage, xsltproc, \
                   gnuplot, mc, ranger, nnn, lf, vifm, tig, lazygit, w3m, lynx, elinks, links, htop",
        why: "it has commands of its own that run programs or write files",
        ..CLOSED
    },
    Guard {
        programs: "psql",
        why: "psql runs files and programs, or writes files by it",
        long: "file, output, log-file, variable, set, single-step",
        short: "foLvs",
        with_value: "cdFhPpRTtU",
        check: Some(script::psql),
        ..BASE
    },
    Guard {
        programs: "mysql, mariadb",
        why: "it loads libraries or configuration, or runs programs by it",
        long: "init-command, defaults-file, defaults-extra-file, defaults-group-suffix, plugin-dir, \
               pager, tee, login-path, local-infile, load-data-local-dir, default-auth, auth",
        with_value: "eDhPpuS",
        check: Some(script::mysql),
        ..BASE
    },
    Guard {
        programs: "sqlite, sqlite3",
        why: "sqlite runs commands and loads libraries by it",
        long: "init, cmd, A, append, deserialize, vfs, zip, ascii-art",
        check: Some(script::sqlite),
        ..BASE
    },
    Guard {
        programs: "redis-cli",
        why: "it runs scripts, or writes the files of the server",
        covers: Covers::Subcommands(
            "get, mget, ping, info, keys, dbsize, ttl, pttl, type, exists, llen, lrange, hget, \
             hgetall, hkeys, scard, smembers, zrange, zcard, strlen, scan, time",
        ),
        long: "eval, ldb, pipe, rdb, functions-rdb, x, X",
        short: "xX",
        check: Some(data::some_operand),
        ..BASE
    },
    Guard {
        programs: "ps",
        why: "it shows the environment of other processes",
        check: Some(data::ps),
        ..READER
    },
    Guard {
        programs: "top, lsof, pstree, ss, netstat, vmstat, iostat, mpstat, dmesg",
        why: "it stops other sockets, clears a log or shows the environment",
        long: "kill, clear, read-clear, console-level, environ",
        short: "KC",
        with_value: "cdDEgGinopuFs",
        ..READER
    },
    Guard {
        programs: "crontab",
        why: "it says what runs later",
        check: Some(data::only_list),
        ..READER
    },
    Guard {
        programs: "systemctl",
        why: "it changes services, or reaches other machines",
        covers: Covers::Subcommands(
            "status, is-active, is-enabled, is-failed, list-units, list-unit-files, \
             list-timers, list-sockets, list-dependencies, show, cat",
        ),
        long: "host, machine, root, image, firmware-setup",
        short: "HM",
        with_value: "tpnos",
        ..BASE
    },
    Guard {
        programs: "systemctl edit, systemctl link, systemctl set-environment, systemctl \
                   import-environment, systemctl set-property, systemctl switch-root",
        why: "it says what services run",
        ..CLOSED
    },
    Guard {
        programs: "journalctl",
        why: "it removes logs, or writes files",
        long: "directory, file, root, machine, image, vacuum-size, vacuum-time, vacuum-files, rotate, \
               flush, sync, relinquish-var, smart-relinquish-var, setup-keys, force, cursor-file, \
               namespace, update-catalog",
        short: "DM",
        with_value: "unpgtocS",
        ..READER
    },
    Guard {
        programs: "openssl",
        why: "it loads libraries, runs as client or server, or reads commands",
        covers: Covers::Subcommands(
            "version, dgst, x509, verify, rand, ciphers, sha256, sha1, md5, \
                                     errstr, asn1parse, crl, prime, list, base64, enc, pkey, rsa, ec",
        ),
        long: "engine, provider, provider-path, propquery, config, writerand, rand, sess_out, \
               engine_impl, conf, provparam",
        check: Some(data::some_operand),
        ..BASE
    },
    Guard {
        programs: "openssl s_client, openssl s_server, openssl s_time, openssl engine, openssl ca, openssl \
                   req, openssl ocsp, openssl smime, openssl cms, openssl speed, openssl tsget, openssl \
                   ts, openssl cmp, openssl rehash, openssl fipsinstall, openssl genrsa",
        why: "it takes configuration, connects elsewhere or loads libraries",
        ..CLOSED
    },
    Guard {
        programs: "shutdown, reboot, halt, poweroff, init, telinit, mount, umount, fusermount, swapon, \
                   swapoff, insmod, modprobe, rmmod, depmod, kexec, mkfs, mkswap, fdisk, sfdisk, parted, \
                   losetup, cryptsetup, lvm, mdadm, iptables, ip6tables, nft, ufw, firewall-cmd, sysctl, \
                   useradd, usermod, userdel, groupadd, groupmod, groupdel, adduser, addgroup, deluser, \
                   passwd, chpasswd, gpasswd, visudo, vipw, chsh, chfn, hostnamectl, timedatectl, \
                   localectl, loginctl, ldconfig, update-alternatives, update-rc.d, chkconfig, service, \
                   rc-service, initctl, snap, flatpak, apt-key, add-apt-repository, debconf, dpkg-reconfigure, \
                   setfacl, setcap, chattr, chcon, semanage, setenforce, auditctl, mknod, pivot_root, \
                   losetup, blockdev, hdparm, ifconfig, route, arp, iw, nmcli, tc, brctl, ethtool, wall, \
                   write, crond, cron, anacron, sshd, dockerd, containerd",
        why: "it changes the machine",
        ..CLOSED
    },
];
