package badger

import "golang.org/x/sys/windows"

// lockDir takes no lock: Badger's own opening finds out whether another process
// has the directory.
func lockDir(string) (unlock func(), free bool, err error) { return func() {}, true, nil }

// freeBytes returns what the user of this process may still write.
func freeBytes(dir string) (uint64, error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(path, &free, nil, nil)
	return free, err
}
