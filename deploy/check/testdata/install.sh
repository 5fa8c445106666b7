# Installs, upgrades, goes back, removes and purges.
is() { [ "$1" = "$2" ] || { echo "got \"$1\", want \"$2\"" >&2; exit 1; }; }
dpkg -i /packages/ropeline_1.2.3_*.deb
is "$(ropeline version | cut -d' ' -f2)" 1.2.3
is "$(stat -c %U:%G:%a /etc/ropeline)" root:ropeline:750
is "$(stat -c %U:%G:%a /etc/ropeline/ropeline.yaml)" root:ropeline:640
is "$(stat -c %U:%G:%a /var/lib/ropeline)" ropeline:ropeline:700
is "$(getent passwd ropeline | cut -d: -f6,7)" /var/lib/ropeline:/usr/sbin/nologin
[ -f /usr/share/doc/ropeline/docs/configuration.md ]
[ -f /usr/share/doc/ropeline/docs/../deploy/alerts/ropeline.rules.yaml ]
if command -v systemd-analyze; then
  systemd-analyze verify --man=no ropeline.service
  systemd-analyze security --offline=true --threshold=20 ropeline.service | tail -1
fi

# What an operator wrote, and what a node keeps, outlasts another version.
echo "# kept" >>/etc/ropeline/ropeline.yaml
install -o ropeline -g ropeline -m 0600 /dev/null /var/lib/ropeline/store
for version in 1.3.0 1.2.3; do
  dpkg -i /packages/ropeline_${version}_*.deb
  is "$(tail -n 1 /etc/ropeline/ropeline.yaml)" "# kept"
  is "$(stat -c %U:%G:%a /etc/ropeline/ropeline.yaml)" root:ropeline:640
  is "$(stat -c %U:%a /var/lib/ropeline/store)" ropeline:600
  is "$(ropeline version | cut -d' ' -f2)" $version
done

dpkg -r ropeline
is "$(tail -n 1 /etc/ropeline/ropeline.yaml)" "# kept"
[ -f /var/lib/ropeline/store ] && [ ! -e /usr/bin/ropeline ]
dpkg --purge ropeline | tee /purged
grep -q "/var/lib/ropeline is kept" /purged
[ -f /var/lib/ropeline/store ] && [ ! -e /etc/ropeline ]

# Where there is no systemd-sysusers the user is made by other means, and a data directory
# that was never used goes.
rm -r /var/lib/ropeline
userdel ropeline
rm -f /usr/bin/systemd-sysusers
dpkg -i /packages/ropeline_1.2.3_*.deb
is "$(getent passwd ropeline | cut -d: -f6,7)" /var/lib/ropeline:/usr/sbin/nologin
dpkg --purge ropeline
[ ! -e /var/lib/ropeline ]
