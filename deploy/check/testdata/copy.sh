#!/bin/bash
# Runs the script on standard input as root on a copy of this machine that is thrown away,
# with the folder $1 as /packages. $2 is an empty folder to make the copy in. It has network,
# mounts and processes of its own. Leaves with 77 where there can be no copy.
set -eu
copy=$2
(
  mount -t tmpfs tmpfs "$copy" && mkdir "$copy"/{upper,work,root} &&
    mount -t overlay overlay -o "lowerdir=/,upperdir=$copy/upper,workdir=$copy/work" "$copy/root" &&
    mount -t proc proc "$copy/root/proc" && ip link set lo up
) || exit 77
mkdir "$copy/root/packages"
cp "$1"/* "$copy/root/packages"
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
# Images for containers leave documents out, which this one shall have.
rm -f "$copy"/root/etc/dpkg/dpkg.cfg.d/*
# Read whole: a program of the script must not read on from where bash is.
exec chroot "$copy/root" /bin/bash -eux -c "$(cat)"
