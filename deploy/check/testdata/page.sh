# What the page on installing is run with, where there is no systemd.
cat >/usr/local/bin/sudo <<'END'
#!/bin/sh
exec "$@"
END
cat >/usr/local/bin/systemctl <<'END'
#!/bin/sh
# Runs what the unit says, as the account that it says, until the node is ready.
case "$1" in enable | restart) ;; *) exit 0 ;; esac
if [ -f /run/node ]; then
  kill "$(cat /run/node)"
  while kill -0 "$(cat /run/node)" 2>/dev/null; do sleep 0.05; done
fi
command=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/ropeline.service)
STATE_DIRECTORY=/var/lib/ropeline setpriv --reuid=ropeline --regid=ropeline --init-groups \
  sh -c 'echo $$ >&3; exec '"$command" 3>/run/node >>/var/log/node 2>&1 &
ropeline health --wait 1m >/dev/null
END
# RPM knows nothing of what this machine has from other packages.
cat >/usr/local/bin/rpm <<'END'
#!/bin/sh
exec /usr/bin/rpm --nodeps "$@"
END
# Settings of the kernel are for all of this machine.
cat >/usr/local/bin/sysctl <<'END'
#!/bin/sh
[ "$1" = --system ]
END
chmod +x /usr/local/bin/*
is() { [ "$1" = "$2" ] || { echo "got \"$1\", want \"$2\"" >&2; exit 1; }; }
version() { ropeline node list --json | grep -o '"version": *"[^"]*"' | cut -d'"' -f4; }
cd /packages
