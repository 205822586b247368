//! The network, other machines, containers and clouds.

use super::{BASE, CLOSED, Covers, Guard, OTHER, READER};
use crate::policy::checks::network;

/// The rows.
pub(crate) const ROWS: &[Guard] = &[
    Guard {
        programs: "curl",
        why: "curl takes configuration, credentials or libraries from it, or talks to a local socket",
        long: "config, unix-socket, abstract-unix-socket, netrc, netrc-file, netrc-optional, engine, \
               proto-default, output-dir, etag-save, stderr, libcurl, crlfile, krb, delegation, \
               ipfs-gateway, proto-redir, variable, create-file-mode, hostpubmd5, pubkey, egd-file, random-file",
        plain_long: "proto",
        short: "Kn",
        with_value: "AbcCdDeEFHmoPQrtTuUwxXyYzh",
        check: Some(network::curl),
        ..BASE
    },
    Guard {
        programs: "wget",
        why: "wget takes configuration, runs a program or lets the server name what it writes",
        long: "execute, config, use-askpass, content-disposition, trust-server-names, force-directories, \
               no-host-directories, cut-dirs, mirror, recursive, page-requisites, input-file, \
               default-page, preferred-location, warc-file, rejected-log, hsts-file, convert-links, \
               background, unlink",
        short: "exrmpiKkb",
        with_value: "aABDIlOoPQTtUwX",
        words: "-nH, -nh",
        check: Some(network::wget),
        ..BASE
    },
    Guard {
        programs: "scp",
        why: "scp runs programs or takes configuration from it",
        short: "SoFDJi",
        with_value: "clPX",
        ..BASE
    },
    Guard {
        programs: "rsync",
        why: "rsync runs programs, or is a server by it",
        long: "rsh, rsync-path, remote-option, daemon, config, dparam, filter, exclude-from, \
               include-from, files-from, password-file, write-batch, only-write-batch, read-batch, \
               log-file, early-input, server, sender, no-detach, address, copy-as, compare-dest, \
               copy-dest, link-dest, stderr, iconv",
        short: "eMf",
        with_value: "BT@",
        ..BASE
    },
    Guard {
        programs: "ping, ping6, dig, nslookup, host, traceroute, tracepath, whois, mtr, drill, kdig",
        why: "it reads queries or keys from a file",
        short: "fk",
        with_value: "cbpqtWwiIs",
        ..READER
    },
    Guard {
        programs: "ssh, sshfs, mosh, autossh, ssh-add, ssh-keygen, ssh-keyscan, ssh-copy-id, nc, ncat, netcat, socat, \
                   telnet, rlogin, rsh, openvpn, wg, wg-quick, tor, ngrok, cloudflared, chisel, frpc, \
                   vagrant, ansible, ansible-playbook, ansible-console, ansible-pull, ansible-galaxy, \
                   puppet, chef-client, salt, salt-call, fab, packer, pulumi, aria2c, axel, nmap, masscan, \
                   sqlmap, hydra, msfconsole, rclone, restic, borg, duplicity, mosquitto_pub, websocat, \
                   grpcurl, xonotic, aws-shell, session-manager-plugin, eksctl, kops, minikube, kind, k3d, \
                   k9s, stern, tilt, skaffold, buildah, skopeo, crane, regctl, oras, ko, nomad, consul, vault, boundary, teleport, tsh",
        why: "it reaches other machines, runs programs there or here, and reads and writes files",
        ..CLOSED
    },
    Guard {
        programs: "docker run, docker exec, docker create, docker cp, docker save, docker load, docker import, \
                   docker export, docker plugin, docker context, docker buildx, docker commit, docker swarm, docker \
                   service, docker stack, docker secret, docker config, docker login, docker logout, docker \
                   attach, docker start, docker restart, docker update, docker volume, docker node, docker \
                   manifest, docker trust, docker container, docker image, docker builder, docker system, \
                   docker scout, docker sandbox, docker model, docker mcp, docker init, docker debug, docker \
                   extension, podman run, podman exec, podman create, podman cp, podman save, podman load, podman \
                   import, podman export, podman machine, podman system, podman unshare, podman mount, podman \
                   play, podman kube, podman generate, podman start, podman volume, podman container, podman \
                   image, podman attach, podman login, nerdctl run, nerdctl exec, nerdctl cp",
        why: "it runs programs with the rights of the machine, or reads and writes its files",
        ..CLOSED
    },
    Guard {
        programs: "docker compose, docker-compose, podman-compose",
        why: "it runs programs, or takes other configuration",
        long: "project-directory, env-file, volume, entrypoint, user, profile-file, workdir, push",
        short: "v",
        words: "exec, run, cp, attach, alpha, publish, push, commit, export, bridge",
        check: Some(network::no_address),
        ..BASE
    },
    Guard {
        programs: "docker, podman, nerdctl",
        why: "it writes files, hands out credentials or runs programs by it",
        covers: Covers::Subcommands(
            "ps, images, logs, inspect, version, info, top, stats, port, diff, history, search, build, pull, \
             stop, kill, rm, rmi, tag, events, wait, rename",
        ),
        long: "output, secret, ssh, allow, iidfile, metadata-file, build-context, host, config, context, \
               tlscacert, tlscert, tlskey, cidfile, volume, network, security-opt, cap-add, device, \
               privileged, isolation, cgroup-parent, builder, sbom, attest, cache-to, cache-from, push",
        short: "Hov",
        with_value: "ftcmn",
        check: Some(network::build_context),
        ..BASE
    },
    Guard {
        programs: "kubectl exec, kubectl cp, kubectl run, kubectl attach, kubectl debug, kubectl port-forward, kubectl \
                   proxy, kubectl edit, kubectl config, kubectl plugin, kubectl diff, kubectl alpha, kubectl \
                   kustomize, kubectl completion, kubectl certificate, oc exec, oc cp, oc run, oc rsh, oc debug, \
                   oc edit, oc login, oc adm, oc config",
        why: "it runs programs, opens connections or changes configuration",
        ..CLOSED
    },
    Guard {
        programs: "kubectl, oc",
        why: "it takes credentials, configuration or programs from it",
        covers: Covers::Subcommands(
            "get, describe, logs, top, version, explain, api-resources, api-versions, cluster-info, \
             events, rollout, wait, auth",
        ),
        long: "kubeconfig, cache-dir, token, server, certificate-authority, client-certificate, \
               client-key, insecure-skip-tls-verify, kustomize, raw, template, log-file, profile-output, \
               output-directory, username, password, tls-server-name, kuberc",
        short: "sk",
        with_value: "nlLcof",
        check: Some(network::no_address),
        ..BASE
    },
    Guard {
        programs: "helm plugin, helm registry, helm push, helm create, helm package, helm completion",
        why: "it runs or publishes what its arguments name",
        ..CLOSED
    },
    Guard {
        programs: "helm",
        why: "it runs a program or takes other configuration",
        covers: Covers::Subcommands(
            "list, ls, status, get, history, show, search, version, template, lint, env",
        ),
        long: "post-renderer, post-renderer-args, kubeconfig, registry-config, repository-config, \
               repository-cache, repo, kube-apiserver, kube-token, kube-ca-file, output-dir, \
               plugins-dir, ca-file, cert-file, key-file, keyring, kube-as-user",
        with_value: "fno",
        check: Some(network::no_address),
        ..BASE
    },
    Guard {
        programs: "terraform console, terraform login, terraform force-unlock, tofu console, tofu login, \
                   terragrunt run-all, terraform workspace, terraform state, terraform import",
        why: "it evaluates expressions or changes states",
        ..CLOSED
    },
    Guard {
        programs: "terraform, tofu, terragrunt",
        why: "it loads plugins or configuration from it",
        covers: Covers::Subcommands(
            "fmt, validate, version, show, output, providers, graph, plan, get, metadata",
        ),
        long: "plugin-dir, backend-config, from-module, chdir, state, state-out, backup, cli-config, \
               test-directory, generate-config-out, terragrunt-tfpath, terragrunt-config, \
               terragrunt-source",
        ..BASE
    },
    Guard {
        programs: "aws configure, aws ssm, aws s3api, aws cloudshell, aws ecs, aws history, gcloud config, gcloud auth, \
                   gcloud compute, gcloud components, gcloud init, gcloud alpha, gcloud beta, az login, az \
                   config, az extension, az rest, az configure, az interactive, az cloud, az ssh",
        why: "it changes configuration, hands out credentials or opens sessions",
        ..CLOSED
    },
    Guard {
        programs: "aws, gcloud, az, doctl, heroku, flyctl, fly, vercel, netlify, wrangler, firebase, serverless, sls, \
                   cdk, sam, amplify, eb, ibmcloud, oci, linode-cli, hcloud",
        why: "its subcommands differ too much; a prefix rule has to name one",
        covers: Covers::Subcommands(""),
        long: "cli-input-json, cli-input-yaml, endpoint-url, ca-bundle, flags-file, account, \
               impersonate-service-account, app, debug-output, query-file",
        ..OTHER
    },
];
