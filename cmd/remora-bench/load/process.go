package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// listeningPrefix starts the first line that upstream and reverseproxy print;
// the address follows.
const listeningPrefix = "listening on "

// Bounds of a child process: how long it may take to serve and to stop, and how
// much of its log is kept.
const (
	processStart = time.Minute
	processStop  = 30 * time.Second
	processTail  = 16 << 10
)

// process is a child with its own CPU and memory account. It never outlives
// this program: it is killed where it does not stop in time, and on Linux the
// kernel kills it should this program be killed itself.
type process struct {
	name    string
	logFile string // takes its standard error: a pipe would have the generator read it
	cmd     *exec.Cmd
	done    chan struct{} // closed once it has ended
	err     error         // of the end, set before done is closed
	address chan string   // of its listening line, where it prints one
}

// startProcess runs path until it is stopped or ctx ends.
func startProcess(ctx context.Context, name, logFile, path string, args, env []string) (*process, error) {
	p := &process{name: name, logFile: logFile, done: make(chan struct{}), address: make(chan string, 1)}
	log, err := os.Create(logFile)
	if err != nil {
		return nil, fmt.Errorf("create log of %s: %w", name, err)
	}
	p.cmd = exec.CommandContext(ctx, path, args...)
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.WaitDelay = time.Second
	p.cmd.Stderr = log
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), log.Close())
	}
	started := make(chan error, 1)
	go func() {
		// The kernel ties a child's life to the thread that started it, so this
		// one stays until the child has ended, and ends then: its slice is not
		// for the generator.
		runtime.LockOSThread()
		usualSlice()
		bindLife(p.cmd)
		err := p.cmd.Start()
		started <- errors.Join(err, log.Close())
		if err == nil {
			p.readAddress(stdout)
			p.err = p.cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// readAddress reads standard output to its end.
func (p *process) readAddress(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if addr, ok := strings.CutPrefix(lines.Text(), listeningPrefix); ok && len(p.address) == 0 {
			p.address <- addr
		}
	}
	_, _ = io.Copy(io.Discard, stdout) // after a line too long to scan
}

// log returns the newest lines that it wrote, as far as they lie within the
// last processTail bytes.
func (p *process) log() []string {
	f, err := os.Open(p.logFile)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	if end, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(end-processTail, 0), io.SeekStart)
	}
	tail, err := io.ReadAll(f)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimRight(string(tail), "\n"), "\n")
}

// listening waits for the line with the address.
func (p *process) listening(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, processStart)
	defer cancel()
	select {
	case addr := <-p.address:
		return addr, nil
	case <-p.done:
		return "", fmt.Errorf("%s ended: %w\n%s", p.name, errors.Join(p.err), strings.Join(p.log(), "\n"))
	case <-ctx.Done():
		return "", fmt.Errorf("%s: does not listen: %w", p.name, ctx.Err())
	}
}

// ended reports whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// stop asks the process to end and waits for it; past processStop it is killed,
// which is an error.
func (p *process) stop() error {
	if p.ended() {
		return p.err
	}
	if err := terminate(p.cmd.Process); err != nil {
		_ = p.cmd.Process.Kill()
	}
	select {
	case <-p.done:
		return p.err
	case <-time.After(processStop):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("%s: killed: did not stop within %v", p.name, processStop)
	}
}

// kill ends the process at once and waits for it. It is safe to call more than
// once.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// usage is what a process has used so far.
type usage struct {
	cpu time.Duration // user and system, all threads
	rss int64         // resident now, in bytes; see residentOf
}

// clockTick is the unit of CPU times in /proc: Linux reports 100 a second to
// every program.
const clockTick = 10 * time.Millisecond

// usage returns the usage of the process and of those that it has started, such
// as Remora's store. It reads /proc; on systems without one it returns zero.
func (p *process) usage() usage {
	all := usageOf(strconv.Itoa(p.cmd.Process.Pid))
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.cmd.Process.Pid))
	if err != nil {
		return all
	}
	for _, list := range lists { // by the thread that started them
		children, err := os.ReadFile(list)
		if err != nil {
			continue // a thread that has ended
		}
		for _, pid := range strings.Fields(string(children)) {
			child := usageOf(pid)
			all.cpu += child.cpu
			all.rss += child.rss
		}
	}
	return all
}

func usageOf(pid string) usage {
	dir := "/proc/" + pid
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return usage{}
	}
	rollup, err := os.ReadFile(dir + "/smaps_rollup")
	if err != nil {
		return usage{}
	}
	return usage{cpu: statCPU(stat), rss: residentOf(rollup)}
}

// statCPU is fields 14 and 15 of proc_pid_stat(5), utime and stime. The second
// field may hold anything, so fields are counted from its closing parenthesis.
func statCPU(stat []byte) time.Duration {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	user, _ := parseDigits(fields[11])
	system, _ := parseDigits(fields[12])
	return time.Duration(user+system) * clockTick
}

// residentOf is Pss of /proc/PID/smaps_rollup, in bytes: the resident pages of
// a process, of those that it shares with others a share. So pages of the
// program's file, which Remora's two processes have in common, count once.
func residentOf(rollup []byte) int64 {
	_, after, ok := bytes.Cut(rollup, []byte("\nPss:"))
	if !ok {
		return 0
	}
	fields := bytes.Fields(after[:min(len(after), 64)])
	if len(fields) == 0 {
		return 0
	}
	kib, _ := parseDigits(fields[0])
	return kib << 10
}

// settle waits until the process has come to rest: less than a tick of CPU in
// 100 ms, but at most limit.
func (p *process) settle(ctx context.Context, limit time.Duration) {
	p.rest(ctx, 100*time.Millisecond, limit)
}

// quietShare is the part of a processor that a process at rest may take: its
// store's tickers take a hundredth of a slow one.
const quietShare = 40

// rest is settle for a process that pauses in its work, for less than quiet.
func (p *process) rest(ctx context.Context, quiet, limit time.Duration) {
	deadline := time.Now().Add(limit)
	for before := p.usage().cpu; time.Now().Before(deadline); {
		select {
		case <-time.After(quiet):
		case <-p.done:
			return
		case <-ctx.Done():
			return
		}
		now := p.usage().cpu
		if now-before <= max(clockTick, quiet/quietShare) {
			return
		}
		before = now
	}
}
