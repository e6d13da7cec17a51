package listener

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Carrier carries what goes between the two ends of an upgraded connection
// until it ends; see Tunnel.
type Carrier func(ctx context.Context, client, upstream io.ReadWriteCloser) (fromClient, fromUpstream int64)

// halfOpenIdle limits how long a tunnel whose one side has ended waits for the
// other without a byte from it.
const halfOpenIdle = time.Minute

// Tunnel carries bytes between a client and its upstream until both have ended,
// one has failed, or ctx has ended. The end of one side is passed to the other
// as a half-close. After its listener has closed, the tunnel ends once it is
// idle. It closes both sides and holds 2 x 32 KiB meanwhile. It returns the
// bytes from both.
func Tunnel(ctx context.Context, client, upstream io.ReadWriteCloser) (fromClient, fromUpstream int64) {
	return carryBoth(ctx, client, upstream, &tunnelActivity{})
}

// socketTunnel is Tunnel for a WebSocket, whose pings do not count as activity,
// and whose client gets a close frame.
func socketTunnel(ctx context.Context, client, upstream io.ReadWriteCloser) (fromClient, fromUpstream int64) {
	return carryBoth(ctx, client, upstream, &tunnelActivity{fromClient: &frames{}, fromUpstream: &frames{}})
}

// TunnelFor returns the carrier of an upgrade without memory.
func TunnelFor(r *http.Request) Carrier {
	if strings.EqualFold(strings.Join(r.Header["Upgrade"], ","), "websocket") {
		return socketTunnel
	}
	return Tunnel
}

func carryBoth(ctx context.Context, client, upstream io.ReadWriteCloser, said *tunnelActivity) (fromClient, fromUpstream int64) {
	over := make(chan struct{})
	closeBoth := sync.OnceFunc(func() {
		close(over)
		_ = client.Close()
		_ = upstream.Close()
	})
	var leaving sync.WaitGroup
	defer leaving.Wait()
	defer closeBoth()
	defer context.AfterFunc(ctx, closeBoth)()
	said.at = time.Now()
	if listener := closingOf(ctx); listener != nil {
		leaving.Go(func() {
			if !said.awaitIdle(listener, over) {
				return
			}
			defer said.client.Unlock()
			if said.fromUpstream.between() {
				_ = WriteGoingAway(client)
			}
			closeBoth()
		})
	}
	t := &halfOpen{close: closeBoth}
	defer t.stop()
	var wg sync.WaitGroup
	wg.Go(func() { fromClient = t.carry(toUpstream{upstream, said}, client) })
	fromUpstream = t.carry(toClient{client, said}, upstream)
	wg.Wait()
	return fromClient, fromUpstream
}

// tunnelBuffer is the size of the buffer of each direction of a tunnel.
const tunnelBuffer = 32 << 10

var tunnelBuffers = sync.Pool{New: func() any { return new([tunnelBuffer]byte) }}

// halfOpen closes a tunnel whose one side has ended and whose other side is
// silent.
type halfOpen struct {
	close func()
	half  atomic.Bool
	mu    sync.Mutex
	timer *time.Timer
}

// carry copies src to dst and returns the bytes written.
func (t *halfOpen) carry(dst io.Writer, src io.Reader) (total int64) {
	buf := tunnelBuffers.Get().(*[tunnelBuffer]byte)
	defer tunnelBuffers.Put(buf)
	for {
		n, err := src.Read(buf[:])
		if n > 0 {
			if t.half.Load() {
				t.extend()
			}
			m, werr := dst.Write(buf[:n])
			total += int64(m)
			if werr != nil {
				t.close()
				return total
			}
		}
		if err != nil {
			if err != io.EOF || CloseWrite(dst) != nil {
				t.close()
			}
			t.half.Store(true)
			t.extend()
			return total
		}
	}
}

func (t *halfOpen) extend() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer == nil {
		t.timer = time.AfterFunc(halfOpenIdle, t.close)
		return
	}
	t.timer.Reset(halfOpenIdle)
}

func (t *halfOpen) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
}
