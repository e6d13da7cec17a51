//go:build !linux

package main

// dropProgram has no way to tell the system.
func dropProgram() {}
