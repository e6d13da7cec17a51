//go:build !linux

package main

// dropProgram has no way to tell the system.
func dropProgram() {}

func mappedBytes() uint64 { return 0 }
