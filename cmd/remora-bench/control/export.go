package control

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
	"github.com/remora-proxy/remora/cmd/remora-bench/load"
)

// exportGrowth is how much more memory a process may need, in MiB.
const exportGrowth = 32

// export exports the whole store from a fresh process.
func (r *run) export(ctx context.Context, s *load.Server, c *client) error {
	pids := s.PIDs()
	before := make([]resident, len(pids))
	for i, pid := range pids {
		before[i] = residentOf(pid)
	}
	watching, stop := context.WithCancel(ctx)
	peaks := make(chan []resident, 1)
	go func() { peaks <- watchMemory(watching, pids) }()
	var lines counter
	took, err := c.do(ctx, request{method: "GET", path: "/v1/export", want: 200}, func(body io.Reader) error {
		_, err := io.CopyBuffer(&lines, struct{ io.Reader }{body}, make([]byte, 64<<10))
		return err
	})
	stop()
	peak := <-peaks
	if err != nil {
		return err
	}
	want := r.users * r.memories
	if lines.lines < want {
		return fmt.Errorf("%d lines, want %d at least", lines.lines, want)
	}
	r.out.info("export, lines", float64(lines.lines), 0, "", fmt.Sprintf("%.0f MiB", float64(lines.bytes)/(1<<20)))
	r.out.info("export, time", took.Seconds(), 1, "s", fmt.Sprintf("%.0f lines a second", float64(lines.lines)/took.Seconds()))
	for i := range pids {
		growth := peak[i].anon - before[i].anon
		if !peak[i].known {
			growth = nan
		}
		r.out.add(row{
			what: "export, growth of " + processName(i), measured: cli.Number(growth), decimals: 1, unit: "MiB", aim: exportGrowth,
			note: fmt.Sprintf("not of files: %.1f before, %.1f at most; resident with files: %.1f and %.1f",
				before[i].anon, peak[i].anon, before[i].all, peak[i].all),
		})
	}
	return nil
}

// processName names the processes of [load.Server.PIDs].
func processName(i int) string {
	if i == 0 {
		return "the proxy"
	}
	return "the store's process"
}

// counter counts lines.
type counter struct{ lines, bytes int }

func (c *counter) Write(p []byte) (int, error) {
	c.lines += bytes.Count(p, []byte("\n"))
	c.bytes += len(p)
	return len(p), nil
}
