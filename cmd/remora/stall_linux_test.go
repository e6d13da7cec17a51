package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestStalledStore has the store of a Remora in 128 MiB stand still while
// traffic goes on as fast as it can: for REMORA_STALL, or two seconds, in which
// all that waits for the store is full already. Then both processes stand
// still. Nothing is ended for memory, and what was not stored is counted.
func TestStalledStore(t *testing.T) {
	stall := 2 * time.Second
	if d, err := time.ParseDuration(os.Getenv("REMORA_STALL")); err == nil {
		stall = d
	}
	m, serve, child := newMillion(t, "stall", 0, "REMORA_STORAGE_HANG_TIMEOUT=1h")
	ctx, stop := context.WithCancel(t.Context())
	var watching, talking sync.WaitGroup
	watching.Go(func() { m.watch(ctx, serve.Process.Pid, child) })
	talk, quiet := context.WithCancel(ctx)
	for i := range millionChats {
		talking.Go(func() {
			client := &http.Client{Timeout: standstill, Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for n := 0; talk.Err() == nil; n++ {
				text := fmt.Sprintf("I have %d cats. Item %s lies on shelf %d. %s", n%89, item(i, n), n%97, strings.Repeat("And so on, and so on. ", n%200))
				if err := m.ask(client, i*10+n%10, text); err != nil {
					m.failed.Add(1)
					t.Error(err)
					return
				}
				m.said.Add(1)
			}
		})
	}
	time.Sleep(stall)
	for _, pids := range [][]int{{child}, {serve.Process.Pid, child}} {
		before := m.said.Load()
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(stall)
		t.Logf("%d turns while %d processes stood still", m.said.Load()-before, len(pids))
		if len(pids) == 1 && m.said.Load() < before+millionChats {
			t.Error("no request is answered while the store stands still")
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(stall)
	}
	quiet()
	talking.Wait()
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	now := childOf(serve.Process.Pid)
	stop()
	watching.Wait()
	<-m.read // Wait closes what is not read yet
	if err := serve.Wait(); err != nil {
		t.Errorf("serve: %v", err)
	}
	if now != child {
		t.Errorf("the store's process was %d and is %d", child, now)
	}
	if n := m.group.Kills(); n != 0 {
		t.Errorf("the kernel killed %d processes for memory", n)
	}
	if m.anon > m.part {
		t.Errorf("%d MiB not of files, want at most %d", m.anon>>20, m.part>>20)
	}
	told := m.farewell()
	if p := told.Proxy; p.Assembled+p.Lost != m.said.Load() || p.NotCopied+p.Undecoded+p.Panics > 0 {
		t.Errorf("%d turns, and the proxy has %+v", m.said.Load(), p)
	}
	if s := told.Persist; told.Proxy.Assembled+told.Proxy.Lost > s.Persisted+told.dropped() || s.Persisted > s.Indexed+s.Duplicates+s.Left || s.Quarantined+s.Damaged > 0 {
		t.Errorf("turns are gone that nothing counts: %+v", told)
	}
	t.Logf("%d turns, %d of them lost and %d dropped, and counted; MiB at most: %d not of files in both, proxy %d resident, store %d resident; %s",
		m.said.Load(), told.Proxy.Lost, told.dropped(), m.anon>>20, m.proxy>>20, m.store>>20, m.group)
}
