//go:build !unix

package main

// privateFiles does nothing: files inherit the rights of their directory here.
func privateFiles() {}
