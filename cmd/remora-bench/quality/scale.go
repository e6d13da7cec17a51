package quality

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/storage"
)

// RunScale measures what recall costs as memory grows: one user from 1,000
// memories to a million, and users from one to 10,000 with 100 memories each.
// The exponent is that of latency against size between the first row and the
// last: 0 is flat, 1 is linear.
func RunScale(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := scaleOptions{}
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.memories, "memories", 1_000_000, "largest memory of one user")
	flags.IntVar(&o.users, "users", 10_000, "most users")
	flags.IntVar(&o.queries, "queries", 500, "requests per row")
	flags.StringVar(&o.data, "data", "", "`file` whose texts are repeated with fresh names (default: made-up texts)")
	flags.BoolVar(&o.json, "json", false, "print one JSON object a line")
	if err := cli.ParseFlags(flags, args); err != nil {
		return err
	}
	if o.memories < 1000 || o.memories > 10_000_000 || o.users < 1 || o.users > 1_000_000 || o.queries < 10 || o.queries > 1_000_000 {
		return cli.UsageError("scale: -memories must be 1000 to 10000000, -users 1 to 1000000, -queries 10 to 1000000")
	}
	speech, err := newSpeech(o.data)
	if err != nil {
		return err
	}
	out := scaleReport{json: o.json, w: tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight), enc: json.NewEncoder(stdout)}
	out.header("memories")
	var rows []scaleRow
	for n := 1000; n <= o.memories; n *= 10 {
		row, err := growUser(ctx, speech, n, o.queries)
		if err != nil {
			return err
		}
		rows = append(rows, row)
		out.row(row)
	}
	out.exponent(rows)
	out.header("users")
	rows = nil
	for n := 1; n <= o.users; n *= 10 {
		row, err := growUsers(ctx, speech, n, o.queries)
		if err != nil {
			return err
		}
		rows = append(rows, row)
		out.row(row)
	}
	out.exponent(rows)
	return out.w.Flush()
}

type scaleOptions struct {
	memories, users, queries int
	data                     string
	json                     bool
}

// scaleRow is one size.
type scaleRow struct {
	what     string
	size     int
	load     time.Duration // of everything
	p50, p99 time.Duration
	heap     float64 // bytes per memory
	counted  float64 // the same as the engine estimates it
	text     float64 // bytes of text per memory
	add      time.Duration
	memories int
}

const memoriesPerUser = 100

func growUser(ctx context.Context, speech *speech, n, queries int) (scaleRow, error) {
	src := &madeUp{speech: speech, perUser: n}
	e := recall.New(patientConfig(), src, nil, nil)
	defer e.Close()
	row := scaleRow{what: "memories", size: n, memories: n}
	err := row.measure(ctx, e, src, 1, queries)
	return row, err
}

func growUsers(ctx context.Context, speech *speech, n, queries int) (scaleRow, error) {
	src := &madeUp{speech: speech, perUser: memoriesPerUser}
	e := recall.New(patientConfig(), src, nil, nil)
	defer e.Close()
	row := scaleRow{what: "users", size: n, memories: n * memoriesPerUser}
	err := row.measure(ctx, e, src, n, queries)
	return row, err
}

func userScope(i int) storage.Scope {
	return storage.Scope{Tenant: "bench", App: "scale", Project: "scale", User: strconv.Itoa(i)}
}

// measure loads all users, then asks.
func (r *scaleRow) measure(ctx context.Context, e *recall.Engine, src *madeUp, users, queries int) error {
	before := heapInUse()
	var scan time.Duration
	start := time.Now()
	for u := range users {
		if _, err := e.Recall(ctx, recall.Request{Scope: userScope(u), Newest: "warm up"}); err != nil {
			return fmt.Errorf("load: %w", err)
		}
	}
	scan = src.spent
	r.load = time.Since(start) - scan // the texts are made while they are scanned
	for e.Stats().Uncoded > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	r.heap = float64(heapInUse()-min(before, heapInUse())) / float64(r.memories)
	r.counted = float64(e.Stats().Bytes) / float64(r.memories)
	r.text = float64(src.bytes) / float64(max(src.made, 1))
	var took []time.Duration
	now := time.UnixMilli(int64(madeUpStart)).Add(time.Duration(r.memories) * time.Second)
	for i := range queries {
		req := recall.Request{Scope: userScope(i * 7919 % users), Newest: src.speech.question(i), Now: now}
		begin := time.Now()
		if _, err := e.Recall(ctx, req); err != nil {
			return fmt.Errorf("recall: %w", err)
		}
		took = append(took, time.Since(begin))
	}
	r.p50, r.p99 = percentile(took, 0.5), percentile(took, 0.99)
	const adds = 200
	fresh := make([]storage.Memory, adds)
	for i := range fresh {
		fresh[i] = src.speech.memory(userScope(0), r.memories+i)
	}
	start = time.Now()
	for _, m := range fresh {
		e.Add(m.Scope, m.Provenance.Turn, []storage.Memory{m})
	}
	r.add = time.Since(start) / adds
	return nil
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// madeUp is a source that makes memories as it is scanned, so that nothing but
// the index holds them.
type madeUp struct {
	speech  *speech
	perUser int
	spent   time.Duration
	bytes   int64
	made    int64
}

// Scan implements recall.Source. Loads of one run come one after the other.
func (s *madeUp) Scan(ctx context.Context, scope storage.Scope, q storage.Query) (storage.Page, error) {
	start := time.Now()
	defer func() { s.spent += time.Since(start) }()
	from, _ := strconv.Atoi(q.After)
	to := min(from+storage.MaxPage, s.perUser)
	p := storage.Page{Memories: make([]storage.Memory, 0, to-from)}
	for i := from; i < to; i++ {
		m := s.speech.memory(scope, i)
		s.bytes += int64(len(m.Text))
		s.made++
		p.Memories = append(p.Memories, m)
	}
	if to < s.perUser {
		p.Next = strconv.Itoa(to)
	}
	return p, ctx.Err()
}

// scaleReport prints rows as they come.
type scaleReport struct {
	json bool
	w    *tabwriter.Writer
	enc  *json.Encoder
}

func (s *scaleReport) header(what string) {
	if !s.json {
		fmt.Fprintf(s.w, "%s\tload\tquery p50\tp99\tadd\theap B/memory\tcounted\ttext\t\n", what)
	}
}

func (s *scaleReport) row(r scaleRow) {
	if s.json {
		_ = s.enc.Encode(map[string]any{
			"grows": r.what, "size": r.size, "memories": r.memories, "load_ms": cli.Number(r.load.Seconds() * 1e3), "p50_us": cli.Number(r.p50.Seconds() * 1e6),
			"p99_us": cli.Number(r.p99.Seconds() * 1e6), "add_us": cli.Number(r.add.Seconds() * 1e6), "heap_bytes_per_memory": cli.Number(r.heap),
			"counted_bytes_per_memory": cli.Number(r.counted), "text_bytes_per_memory": cli.Number(r.text),
		})
		return
	}
	fmt.Fprintf(s.w, "%d\t%v\t%v\t%v\t%v\t%.0f\t%.0f\t%.0f\t\n", r.size, r.load.Round(time.Millisecond), r.p50, r.p99, r.add, r.heap, r.counted, r.text)
	_ = s.w.Flush()
}

// exponent of the median latency against the size.
func (s *scaleReport) exponent(rows []scaleRow) {
	if len(rows) < 2 {
		return
	}
	first, last := rows[0], rows[len(rows)-1]
	e := math.Log(float64(last.p50)/float64(first.p50)) / math.Log(float64(last.size)/float64(first.size))
	if s.json {
		_ = s.enc.Encode(map[string]any{"grows": first.what, "from": first.size, "to": last.size, "exponent": cli.Number(e)})
		return
	}
	fmt.Fprintf(s.w, "exponent\t%.2f\t\n", e)
}
