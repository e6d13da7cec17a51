//go:build !linux

package main

import "time"

func sharpenTimers() {}

func preciseSleep(d time.Duration) { time.Sleep(d) }
