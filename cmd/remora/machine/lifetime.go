package machine

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Lifetime is how long the files of a directory last.
type Lifetime int

// All lifetimes.
const (
	Lasting        Lifetime = iota // or not known
	EmptyDir                       // until the pod is deleted
	InMemory                       // until a tmpfs is unmounted; an emptyDir with medium: Memory is one
	ContainerLayer                 // until the container is deleted
)

// lifetimes says in words why files are lost, and what to do about it.
var lifetimes = map[Lifetime]struct{ reason, fix string }{
	EmptyDir:       {"it is on an emptyDir of Kubernetes, which is deleted with the pod", "Mount a PersistentVolumeClaim there (in the chart: memory.volume.kind=persistentVolumeClaim)."},
	InMemory:       {"it is on a file system in memory (tmpfs), which ends with the pod, the container or the machine", "Take a directory on a disk, or mount a volume there that is kept."},
	ContainerLayer: {"it is in the container's own writable layer, which is deleted with the container", "Mount a volume there that is kept."},
}

// Reason says why files are lost, "" if they last.
func (l Lifetime) Reason() string { return lifetimes[l].reason }

// Fix says what to do so that files last, in a sentence, "" if they do.
func (l Lifetime) Fix() string { return lifetimes[l].fix }

// LifetimeOf returns how long the files of a directory last, which need not
// exist yet. container is true in a container. It is Lasting wherever
// nothing can be told: on other systems than Linux, for "", and for volumes
// that are deleted by somebody else.
func LifetimeOf(dir string, container bool) Lifetime {
	path, err := filepath.Abs(dir)
	if dir == "" || err != nil {
		return Lasting
	}
	m, _ := FindMount(followLinks(path), readMounts())
	return m.lifetime(container)
}

// followLinks follows the symbolic links of a path as far as it exists.
func followLinks(path string) string {
	for at, rest := path, ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) {
			return path
		}
	}
}

// maxMounts is how much of the list of mounts is read, in bytes: some thousand
// lines. A pod has some forty. A longer list is not read.
const maxMounts = 1 << 20

// readMounts returns the mounts of this process as proc_pid_mountinfo(5)
// describes them, "" if there is no such list.
func readMounts() string {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxMounts+1))
	if err != nil || len(text) > maxMounts {
		return ""
	}
	return string(text)
}

// Mount is a mounted file system.
type Mount struct {
	Point string // where it is mounted
	Root  string // the directory of the file system that is mounted there
	Type  string // such as ext4

	id, parent string
}

// InMemory reports whether a file system is kept in memory only.
func (m Mount) InMemory() bool { return m.Type == "tmpfs" || m.Type == "ramfs" }

// emptyDirs is in the path of every emptyDir on its node.
const emptyDirs = "/kubernetes.io~empty-dir/"

func (m Mount) lifetime(container bool) Lifetime {
	layered := m.Type == "overlay" || m.Type == "fuse.fuse-overlayfs" || m.Type == "aufs"
	switch {
	case strings.Contains(m.Root, emptyDirs):
		return EmptyDir
	case m.InMemory():
		return InMemory
	case container && m.Point == "/" && layered:
		return ContainerLayer
	}
	return Lasting
}

// FindMount returns the mount that an absolute path without links is on, given
// the lines of mountinfo. The second value is false if there is none.
func FindMount(path, mountinfo string) (at Mount, found bool) {
	mounts := parseMounts(mountinfo)
	known := map[string]bool{}
	for _, m := range mounts {
		known[m.id] = true
	}
	for range mounts { // each step leads to another one
		next := Mount{}
		for _, m := range mounts {
			child := m.parent == at.id && m.id != at.id
			if !found { // begin at those whose parent this process does not see
				child = !known[m.parent] || m.parent == m.id
			}
			// Of those on one parent the outermost hides the others, and of two
			// at one place the later the earlier.
			if child && below(path, m.Point) && (next.id == "" || len(m.Point) <= len(next.Point)) {
				next = m
			}
		}
		if next.id == "" {
			break
		}
		at, found = next, true
	}
	return at, found
}

// below reports whether path is a directory or in it.
func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// unescape undoes what the kernel does to names in mountinfo.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\043`, "#", `\134`, `\`)

// parseMounts leaves out lines that it does not understand.
func parseMounts(mountinfo string) (mounts []Mount) {
	for line := range strings.Lines(mountinfo) {
		f := strings.Fields(line) // id parent major:minor root mount-point options [tags] - type source options
		dash := slices.Index(f, "-")
		if dash < 6 || dash+1 == len(f) {
			continue
		}
		mounts = append(mounts, Mount{id: f[0], parent: f[1], Root: unescape.Replace(f[3]), Point: unescape.Replace(f[4]), Type: f[dash+1]})
	}
	return mounts
}
