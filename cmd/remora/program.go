package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// runningProgram is a file under which Linux offers the running program, even
// if its own file has been replaced.
const runningProgram = "/proc/self/exe"

// programPath returns the path of this program, to start it once more. If /proc
// is not mounted, the name by which it was called has to do: a path, or what
// PATH finds under it.
func programPath(called string) (string, error) {
	return findProgram(runningProgram, called, os.Executable)
}

func findProgram(running, called string, own func() (string, error)) (string, error) {
	if _, err := os.Stat(running); err == nil {
		return running, nil
	}
	path, err := own()
	if err == nil {
		return path, nil
	}
	if found, lookErr := exec.LookPath(called); lookErr == nil && called != "" {
		return filepath.Abs(found)
	}
	return "", fmt.Errorf("find own program, which is to hold the store (mount /proc, or call it by its path, or set storage.isolation to inline): %w", err)
}
