#!/bin/sh
# Runs after the package was installed or upgraded: makes the user, and the key of a new store.
set -e

if command -v systemd-sysusers >/dev/null 2>&1; then
  systemd-sysusers /usr/lib/sysusers.d/remora.conf
elif ! getent passwd remora >/dev/null; then
  useradd --system --home-dir /var/lib/remora --no-create-home --shell /usr/sbin/nologin remora
fi

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
