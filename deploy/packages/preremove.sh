#!/bin/sh
# Runs before the package is removed or upgraded. dpkg says "remove", rpm says 0 for a removal.
set -e
case "$1" in
  remove | 0)
    if [ -d /run/systemd/system ]; then
      systemctl disable --now remora.socket remora.service
    fi
    ;;
esac
