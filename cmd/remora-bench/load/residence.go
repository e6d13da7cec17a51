package load

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
)

// residence: the memory of an idle process, with a large user loaded, and per
// concurrent stream.
func (m *mustRun) residence(ctx context.Context) error {
	idle, err := m.idleRSS(ctx)
	if err != nil {
		return err
	}
	m.atMost(40, idle, "idle: resident memory, MiB")
	loaded, err := m.loadedRSS(ctx)
	if err != nil {
		return err
	}
	m.atMost(55, loaded, "a user of %d memories loaded: resident memory, MiB", m.memories)
	each, err := m.streamRSS(ctx)
	if err != nil {
		return err
	}
	m.atMost(64, each, "%d concurrent streams: resident memory of each, KiB", residentStreams)
	return nil
}

// How long a process is left alone before its memory counts as that of one at
// rest: after its start, and after a load of some three seconds, for three
// times as long as which Remora keeps what the load has left.
const (
	idleAfter = 3 * time.Second
	restAfter = 15 * time.Second
)

func mib(bytes int64) cli.Number { return cli.Number(bytes) / (1 << 20) }

func (m *mustRun) idleRSS(ctx context.Context) (cli.Number, error) {
	p, _, err := m.startRemora(ctx, "idle", filepath.Join(m.dir, "idle"), m.logLevel)
	if err != nil {
		return 0, err
	}
	select {
	case <-time.After(idleAfter):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	rss := mib(p.usage().rss)
	return rss, p.stop()
}

// loadedRSS asks as the large user for two seconds, which loads the index, and
// lets the process come to rest.
func (m *mustRun) loadedRSS(ctx context.Context) (cli.Number, error) {
	t, err := m.remoraTarget(ctx, targetRead)
	if err != nil {
		return 0, err
	}
	c := m.cell(1, 1)
	c.rounds, c.duration, c.rate = 1, 2*time.Second, 50
	r, err := m.results(ctx, c, []target{t})
	if err != nil {
		return 0, err
	}
	if r[targetRead].Statuses["injected"] == 0 {
		return 0, fmt.Errorf("no request of the user with %d memories got one: %v", m.memories, r[targetRead].Statuses)
	}
	t.proc.rest(ctx, restAfter, 4*restAfter)
	rss := mib(t.proc.usage().rss)
	_, err = t.stop()
	return rss, err
}

// residentStreams is the number of streams whose memory is measured at once.
const residentStreams = 1000

// streamRSS is the growth of a fresh process per stream, in KiB, at its
// highest.
func (m *mustRun) streamRSS(ctx context.Context) (cli.Number, error) {
	t := target{name: targetOn, memory: remoraTargets[targetOn]}
	var err error
	if t.proc, t.addr, err = m.startRemora(ctx, "streams", filepath.Join(m.dir, "streams"), m.logLevel); err != nil {
		return 0, err
	}
	before := t.proc.usage().rss
	// Streams last three seconds, all of which begin within the first two: each
	// connection asks once.
	c := m.cell(1, residentStreams)
	c.rounds, c.duration = 1, 2*time.Second
	c.script = replyScript{events: 30, gap: 100 * time.Millisecond}
	watch, stop := context.WithCancel(ctx)
	peak := make(chan int64, 1)
	go func() { peak <- t.proc.peakRSS(watch) }()
	r, err := m.results(ctx, c, []target{t})
	stop()
	highest := <-peak
	if err != nil {
		return 0, err
	}
	if on := r[targetOn]; on.Errors > 0 {
		err = fmt.Errorf("%d streams failed, the last: %s", on.Errors, on.LastError)
	}
	_, stopped := t.stop()
	return cli.Number(highest-before) / 1024 / residentStreams, errors.Join(err, stopped)
}

// peakRSS samples until ctx ends.
func (p *process) peakRSS(ctx context.Context) int64 {
	var highest int64
	for {
		highest = max(highest, p.usage().rss)
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return highest
		}
	}
}
