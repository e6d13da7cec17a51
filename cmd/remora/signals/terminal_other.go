//go:build !unix

package signals

// attached reports false: no terminal sends SIGHUP here.
func attached() bool { return false }

// Foreground reports true: a console sends its signals to all of its processes.
func Foreground() bool { return true }
