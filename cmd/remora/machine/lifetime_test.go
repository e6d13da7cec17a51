package machine

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Mounts of a pod, as containerd and CRI-O make them.
const (
	containerdPod = `1021 850 0:225 / / rw,relatime - overlay overlay rw,lowerdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/61/fs:/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/60/fs,upperdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/62/fs,workdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/62/work
1022 1021 0:227 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
1023 1021 0:228 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755,inode64
1027 1021 259:1 /var/lib/kubelet/pods/0b7ac7b3-1f0e-4c8a-9d3b-6d5f1f6a2c11/volumes/kubernetes.io~empty-dir/remora-gone-with-the-pod /data rw,relatime - ext4 /dev/nvme0n1p1 rw,commit=30
1028 1021 259:1 /var/lib/kubelet/pods/0b7ac7b3-1f0e-4c8a-9d3b-6d5f1f6a2c11/volumes/kubernetes.io~empty-dir/scratch/sub /with-subpath rw,relatime - ext4 /dev/nvme0n1p1 rw,commit=30
1029 1021 0:219 / /fast rw,relatime - tmpfs tmpfs rw,size=131072k,inode64
1030 1021 259:4 / /claim rw,relatime - ext4 /dev/nvme1n1 rw
1031 1021 0:231 /exports/pvc-8d4c /nfs rw,relatime - nfs4 10.0.0.7:/exports/pvc-8d4c rw,vers=4.2,rsize=1048576,hard,proto=tcp
1032 1021 259:1 /srv/remora /host rw,relatime - ext4 /dev/nvme0n1p1 rw,commit=30
1033 1021 259:1 /opt/local-path-provisioner/pvc-2f1c_default_data /local rw,relatime - ext4 /dev/nvme0n1p1 rw,commit=30
1034 1021 0:218 / /run/secrets/kubernetes.io/serviceaccount ro,relatime - tmpfs tmpfs rw,size=131072k,inode64
`
	crioPod = `1480 1379 0:498 / / rw,relatime - overlay overlay rw,context="system_u:object_r:container_file_t:s0:c10,c26",lowerdir=/var/lib/containers/storage/overlay/l/QX:/var/lib/containers/storage/overlay/l/AB,upperdir=/var/lib/containers/storage/overlay/9f/diff,workdir=/var/lib/containers/storage/overlay/9f/work,metacopy=on,volatile
1501 1480 8:4 /ostree/deploy/rhcos/var/lib/kubelet/pods/5f1e0f4c-7a53-4a3e-8f0e-2e0a1c9d7b42/volumes/kubernetes.io~empty-dir/data /data rw,relatime master:41 - xfs /dev/sda4 rw,seclabel,attr2,inode64,logbufs=8,prjquota
1502 1480 8:16 / /claim rw,relatime master:57 - ext4 /dev/sdb rw,seclabel
`
	// The kubelet's directory on a disk of its own.
	kubeletDisk = `700 650 0:91 / / rw,relatime - overlay overlay rw,lowerdir=/a,upperdir=/b,workdir=/c
701 700 259:3 /pods/6a1b/volumes/kubernetes.io~empty-dir/data /data rw,relatime - xfs /dev/nvme2n1 rw
`
	docker = `612 498 0:52 / / rw,relatime master:232 - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/3X:/var/lib/docker/overlay2/l/5Y,upperdir=/var/lib/docker/overlay2/4e/diff,workdir=/var/lib/docker/overlay2/4e/work
615 612 0:58 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
620 615 0:61 / /dev/shm rw,nosuid,nodev,noexec,relatime - tmpfs shm rw,size=65536k
630 612 8:1 /var/lib/docker/volumes/remora/_data /data rw,relatime master:1 - ext4 /dev/sda1 rw,errors=remount-ro
631 612 8:1 /home/ada/remora /bound rw,relatime - ext4 /dev/sda1 rw,errors=remount-ro
632 612 0:70 / /in-memory rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw
`
	podman = `900 800 0:80 / / rw,relatime - fuse.fuse-overlayfs fuse-overlayfs rw,nodev,user_id=0,group_id=0,default_permissions,allow_other
`
	plain = `22 28 0:21 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw
25 28 0:5 / /dev rw,nosuid,relatime shared:2 - devtmpfs udev rw,size=8081268k
28 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw,errors=remount-ro
29 25 0:25 / /dev/shm rw,nosuid,nodev shared:4 - tmpfs tmpfs rw,inode64
40 28 0:33 / /tmp rw,nosuid,nodev shared:20 - tmpfs tmpfs rw,size=8107212k,nr_inodes=1048576,inode64
41 28 8:17 / /mnt/my\040disk\134one rw,relatime shared:30 master:3 - ext4 /dev/sdb1 rw
42 28 0:40 / /mnt/in\040memory rw shared:31 - ramfs none rw
`
	btrfs = `26 1 0:23 /@ / rw,noatime shared:1 - btrfs /dev/nvme0n1p2 rw,compress=zstd:3,ssd,space_cache=v2,subvolid=256,subvol=/@
44 26 0:23 /@home /home rw,noatime shared:29 - btrfs /dev/nvme0n1p2 rw,compress=zstd:3,ssd,space_cache=v2,subvolid=257,subvol=/@home
`
	live = `20 1 0:18 / / rw,relatime shared:1 - overlay overlay rw,lowerdir=/run/rootfsbase,upperdir=/run/overlay,workdir=/run/ovlwork
`
	// What is mounted over something hides it, wherever it stands in the list.
	hidden = `30 28 8:3 / /srv/data rw - ext4 /dev/sda3 rw
28 1 8:2 / / rw - ext4 /dev/sda2 rw
31 28 0:50 / /srv rw - tmpfs tmpfs rw
50 28 0:51 / /var rw - tmpfs tmpfs rw
51 50 8:5 / /var rw - ext4 /dev/sda5 rw
`
	changedRoot = `70 60 0:71 / /proc rw - proc proc rw
71 60 0:72 / /data rw - tmpfs tmpfs rw
`
)

func TestLifetime(t *testing.T) {
	for _, test := range []struct {
		mounts, path string
		machine      bool // not a container
		want         Lifetime
	}{
		{containerdPod, "/data/store", false, EmptyDir},
		{containerdPod, "/data", false, EmptyDir},
		{containerdPod, "/with-subpath/store", false, EmptyDir},
		{containerdPod, "/fast/store", false, InMemory},
		{containerdPod, "/claim/store", false, Lasting},
		{containerdPod, "/nfs/store", false, Lasting},
		{containerdPod, "/host/store", false, Lasting},
		{containerdPod, "/local/store", false, Lasting},
		{containerdPod, "/database", false, ContainerLayer},
		{containerdPod, "/root/.local/share/remora", false, ContainerLayer},
		{crioPod, "/data/store", false, EmptyDir},
		{crioPod, "/claim/store", false, Lasting},
		{kubeletDisk, "/data", false, EmptyDir},
		{docker, "/data/store", false, Lasting},
		{docker, "/bound", false, Lasting},
		{docker, "/in-memory/x", false, InMemory},
		{docker, "/dev/shm/x", false, InMemory},
		{docker, "/var/lib/remora", false, ContainerLayer},
		{podman, "/var/lib/remora", false, ContainerLayer},
		{plain, "/home/ada/.local/share/remora", true, Lasting},
		{plain, "/home/ada/.local/share/remora", false, Lasting}, // a container in a virtual machine of its own
		{plain, "/tmp/remora", true, InMemory},
		{plain, "/tmpfs", true, Lasting},
		{plain, "/dev/shm/remora", true, InMemory},
		{plain, `/mnt/my disk\one/remora`, true, Lasting},
		{plain, "/mnt/in memory/remora", true, InMemory},
		{btrfs, "/home/ada", true, Lasting},
		{btrfs, "/var", true, Lasting},
		{live, "/home/ada", true, Lasting}, // no container: what keeps its changes is not known
		{hidden, "/srv/data", true, InMemory},
		{hidden, "/var/lib", true, Lasting},
		{changedRoot, "/data/x", true, InMemory},
		{changedRoot, "/else", true, Lasting},
		{"", "/data", false, Lasting},
		{"no such lines\n1 2 3 - -\n\n- - - - - - -\n", "/data", false, Lasting},
		{"5 5 0:1 / / rw - overlay overlay rw\n", "/data", false, ContainerLayer}, // its own parent
	} {
		m, found := FindMount(test.path, test.mounts)
		if got := m.lifetime(!test.machine); got != test.want {
			t.Errorf("%s in\n%s: got %d, want %d", test.path, test.mounts, got, test.want)
		}
		if found != (m.Point != "") {
			t.Errorf("%s: found %v, %+v", test.path, found, m)
		}
	}
	for l := Lasting; l <= ContainerLayer; l++ {
		if said := l.Reason() != "" && l.Fix() != ""; said != (l != Lasting) {
			t.Errorf("%d: reason %q, fix %q", l, l.Reason(), l.Fix())
		}
	}
}

// The directory need not exist, and may be reached by a link.
func TestLifetimeOfThisMachine(t *testing.T) {
	if got := LifetimeOf("", true); got != Lasting {
		t.Errorf("no directory: got %d", got)
	}
	if runtime.GOOS != "linux" {
		if got := LifetimeOf(t.TempDir(), true); got != Lasting {
			t.Errorf("where nothing can be told: got %d", got)
		}
		return
	}
	if !strings.Contains(readMounts(), " / / ") {
		t.Fatalf("the mounts of this process are %q", readMounts())
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/dev/shm", link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/dev/shm", "/dev/shm/not-there/yet", link, link + "/not-there/yet"} {
		if got := LifetimeOf(dir, false); got != InMemory {
			t.Errorf("%s: got %d, want %d", dir, got, InMemory)
		}
	}
	t.Chdir("/dev/shm")
	if got := LifetimeOf("store", false); got != InMemory {
		t.Errorf("a relative path: got %d, want %d", got, InMemory)
	}
}
