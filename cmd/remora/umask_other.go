//go:build !unix

package main

// privateFiles has nothing to do: files have the rights of their directory
// here.
func privateFiles() {}
