package process

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// minUptime is how long a process must have run for the next start to wait no
// longer than the first. A fault before that counts as one while opening the
// store: Badger meets some damage only when it compacts, shortly after opening.
const minUptime = 10 * time.Second

// child is one run of the process.
type child struct {
	cmd    *exec.Cmd
	conn   net.Conn
	log    *childLog
	done   chan struct{} // closed when it has ended and err is set
	err    error
	killed string // why this process killed it; "" = it did not
}

// Run keeps the process running until ctx ends, then lets it close the store
// and waits for its end. It returns nil: a process that cannot be started is
// logged and started again.
func (c *Client) Run(ctx context.Context) error {
	wait, crashes, setAside := c.cfg.FirstWait, 0, 0
	for {
		began := time.Now()
		opening, err := c.runChild(ctx, crashes)
		if ctx.Err() != nil {
			c.setLink(nil, 0, "closed")
			return nil
		}
		if n := c.storesSetAside(); n != setAside { // another store crashed, from its first start
			crashes, setAside = 0, n
		}
		crashed, _ := errors.AsType[*crashError](err)
		switch {
		case crashed != nil && crashed.fault && (opening || time.Since(began) < minUptime):
			if c.cfg.Excused == nil || !c.cfg.Excused() {
				crashes++
			}
		case !opening:
			crashes = 0
		}
		if time.Since(began) > minUptime {
			wait = c.cfg.FirstWait
		}
		pause := wait/2 + rand.N(wait/2+1)
		wait = min(2*wait, c.cfg.LastWait)
		c.setLink(nil, 0, "its process ended: "+err.Error())
		attributes := []any{"reason", err.Error(), "opening", opening, "crashes", crashes, "retry_in", pause.Round(time.Millisecond).String()}
		if crashed != nil && crashed.trace != "" {
			attributes = append(attributes, "trace", crashed.trace)
		}
		c.log.Error("the store's process ended, memory is unavailable", attributes...)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			c.setLink(nil, 0, "closed")
			return nil
		}
		c.mu.Lock()
		c.restarts++
		c.mu.Unlock()
	}
}

// storesSetAside returns how many stores the last process knew to be set aside.
func (c *Client) storesSetAside() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.last.SetAside)
}

// runChild starts the process and waits for its end. It returns whether the
// process ended while it opened the store, and why it ended.
func (c *Client) runChild(ctx context.Context, crashes int) (opening bool, err error) {
	ch, err := c.start()
	if err != nil {
		return false, err
	}
	pid := ch.cmd.Process.Pid
	boot, err := c.cfg.Boot(crashes)
	if err == nil {
		_ = ch.conn.SetDeadline(time.Now().Add(handshakeTimeout))
		err = writeMessage(ch.conn, kindBoot, boot)
	}
	var l *link
	if err == nil {
		l, err = newLink(ch.conn, c.cfg.Build, &c.free)
	}
	if err != nil {
		ch.kill("it does not answer")
		_ = ch.conn.Close()
		<-ch.done
		return true, errors.Join(err, ch.cause())
	}
	c.setLink(l, pid, "")
	defer c.setLink(nil, 0, "its process has ended")
	c.watch(ctx, l, ch)
	if ctx.Err() != nil && ch.killed == "" {
		timeout := c.cfg.Stop
		if _, _, down := l.state(); down != nil {
			timeout = min(timeout, c.cfg.Hang) // it may be stopped, or hang
		}
		l.close()
		select {
		case <-ch.done:
		case <-time.After(timeout):
			c.log.Error("the store's process does not exit: killing it", "pid", pid, "after", timeout.String())
			ch.kill("it did not exit")
		}
	}
	select { // the socket first, so that the last status is read
	case <-l.stopped:
	case <-time.After(time.Second):
	}
	<-ch.done
	l.end(nil)
	<-l.stopped
	status, known, _ := l.state()
	return !known || status.Opening, ch.cause()
}

// openPing is the ping interval while the store is not open.
const openPing = 20 * time.Millisecond

// watch returns when the process has ended or was killed, or ctx has ended.
func (c *Client) watch(ctx context.Context, l *link, ch *child) {
	suspected := false
	for {
		every := c.cfg.Ping
		if status, known, _ := l.state(); !known || !status.Open {
			every = min(every, openPing)
		}
		if suspected {
			every = min(every, c.cfg.Suspect/4)
		}
		wait := min(every, c.cfg.Suspect/2)
		before := time.Now()
		select {
		case <-ctx.Done():
			return
		case <-ch.done:
			return
		case <-l.stopped: // it closed the socket, so it should end
			select {
			case <-ch.done:
			case <-time.After(c.cfg.Hang):
				ch.kill("it closed its socket")
			}
			return
		case <-time.After(wait):
		}
		if late := time.Since(before) - wait; late > c.cfg.Suspect { // this process was stopped, and maybe the other with it
			l.addPause(late)
		}
		silent, oldest := l.ping(time.Now())
		switch {
		case silent > c.cfg.Hang:
			ch.kill(fmt.Sprintf("it was silent for %s", silent.Round(time.Millisecond)))
			return
		case oldest > c.cfg.Stuck:
			ch.kill(fmt.Sprintf("a call took longer than %s", c.cfg.Stuck))
			return
		case silent > c.cfg.Suspect && !suspected:
			suspected = true
			l.fail(unavailable("its process does not answer"))
			c.log.Warn("the store's process does not answer, memory is unavailable", "pid", ch.cmd.Process.Pid, "silent", silent.Round(time.Millisecond).String())
		case silent == 0 && suspected:
			suspected = false
			l.recover()
			c.log.Info("the store's process answers again", "pid", ch.cmd.Process.Pid)
		}
	}
}

// start starts the process with one end of a new socket.
func (c *Client) start() (*child, error) {
	cmd, err := c.cfg.Command()
	if err != nil {
		return nil, err
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("make socket: %w", err)
	}
	defer theirs.Close()
	logs, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, out, out
	setAttributes(cmd)
	ch := &child{cmd: cmd, conn: ours, log: &childLog{log: c.log}, done: make(chan struct{})}
	read := make(chan struct{})
	go func() { defer close(read); ch.log.follow(logs); _ = logs.Close() }()
	started := make(chan error, 1)
	go func() {
		// The kernel kills a child when the thread that started it ends, so
		// this thread is kept until then.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		_ = out.Close()
		started <- err
		if err == nil {
			ch.err = cmd.Wait()
			<-read
			close(ch.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(fmt.Errorf("start store: %w", err), ours.Close())
	}
	c.log.Debug("the store's process is started", "pid", cmd.Process.Pid)
	return ch, nil
}

func (ch *child) kill(why string) {
	ch.killed = why
	_ = ch.cmd.Process.Kill() // it may have ended
}

// crashError is an end of the process that was not requested.
type crashError struct {
	text  string
	trace string
	// fault is set if the process failed on its own data or code: a panic, a
	// bus error. A process that was killed, or ran out of memory or threads,
	// says nothing about the store's files.
	fault bool
}

func (e *crashError) Error() string { return e.text }

func (ch *child) cause() error {
	if ch.killed != "" {
		return &crashError{text: "killed, because " + ch.killed}
	}
	text := "exited"
	if ch.err != nil {
		text = ch.err.Error()
	}
	trace, fault := ch.log.crash()
	fault = fault || faultSignal(ch.cmd.ProcessState)
	return &crashError{text: text, trace: trace, fault: fault && !ch.log.starved()}
}
