#!/bin/sh
# Runs after the package was installed or upgraded: makes the user, and the key of a new store.
set -e

if command -v systemd-sysusers >/dev/null 2>&1; then
  systemd-sysusers /usr/lib/sysusers.d/remora.conf
elif ! getent passwd remora >/dev/null; then
  useradd --system --home-dir /var/lib/remora --no-create-home --shell /usr/sbin/nologin remora
fi

# Settings and variables may be keys. The user is made only now, so that what was unpacked, or made by hand, may be root's
# alone. Another group is somebody's choice.
for file in /etc/remora/config.json /etc/remora/remora.env; do
  if [ -e "$file" ] && [ "$(stat -c %g "$file")" = 0 ]; then
    chgrp remora "$file"
    chmod o= "$file"
  fi
done

# Never where there is data: it was sealed with another key.
if [ ! -e /etc/remora/store.key ] && [ ! -e /var/lib/remora/store/keyring ]; then
  (umask 077 && od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n' >/etc/remora/store.key.new)
  mv /etc/remora/store.key.new /etc/remora/store.key
  echo "Remora: made /etc/remora/store.key. Keep a copy: without it the memories can't be read."
fi

if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart remora.service
fi
