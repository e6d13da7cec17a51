#!/bin/sh
# Runs after the package was removed. The memories, their key and the configuration stay: deleting them is a decision
# of its own, which docs/install.md describes.
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
