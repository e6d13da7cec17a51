package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api/documents"
	"github.com/remora-proxy/remora/api/imports"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/persist/facts"
	"github.com/remora-proxy/remora/storage"
)

// ImportOptions say how an export of another tool is read.
type ImportOptions struct {
	Format string // one of imports.Formats; "" = detected
	// DryRun counts what would come and stores nothing.
	DryRun bool
}

// ImportReport counts what came of an import.
type ImportReport struct {
	Format        string         `json:"format"`
	DryRun        bool           `json:"dryRun"`
	Files         int            `json:"files"`
	Conversations int            `json:"conversations"`
	Messages      int            `json:"messages"`
	Memories      int            `json:"memories"` // facts and documents of the export
	Turns         int            `json:"turns"`    // handed to the pipeline, which redacts and audits them
	Saved         int            `json:"saved"`    // of Memories, those that are new
	Known         int            `json:"known"`    // of Memories, those that were there
	Refused       map[string]int `json:"refused"`  // of Memories, by reason
	Rejected      map[string]int `json:"rejected"` // by the reader, by reason
	From          string         `json:"from,omitempty"`
	To            string         `json:"to,omitempty"` // of the messages' times
}

// Import reads an export and hands what it holds to the pipeline, as live
// turns are: redacted, audited, merged. The same export again adds nothing.
// progress, if not nil, is called now and then. An export in which there is
// nothing to import is an error.
func (s *intake) Import(ctx context.Context, p Principal, t Target, fsys fs.FS, o ImportOptions, progress func(ImportReport)) (ImportReport, error) {
	if o.Format != "" && !slices.Contains(imports.Formats(), o.Format) {
		return ImportReport{}, invalid("format", "must be one of %s", strings.Join(imports.Formats(), ", "))
	}
	i := importer{intake: s, ctx: ctx, p: p, t: t, progress: progress}
	i.report = ImportReport{DryRun: o.DryRun, Refused: map[string]int{}, Rejected: map[string]int{}}
	if _, err := s.scope(p, t); err != nil {
		return i.report, err
	}
	var err error
	if i.secret, err = s.installSecret(ctx); err != nil {
		return i.report, err
	}
	read, err := imports.Read(fsys, o.Format, i.take)
	i.report.Format, i.report.Files, i.report.Conversations = read.Format, read.Files, read.Conversations
	i.report.Messages, i.report.Memories, i.report.Rejected = read.Messages, read.Memories, read.Rejected
	i.report.From, i.report.To = stamp(i.from), stamp(i.to)
	switch {
	case errors.Is(err, imports.ErrNothing), errors.Is(err, imports.ErrFormat):
		return i.report, invalid("body", "%v", err)
	case err != nil && ctx.Err() == nil && !isOwn(err):
		return i.report, invalid("body", "%v", err)
	case err != nil:
		return i.report, err
	}
	if err := i.flush(); err != nil || o.DryRun {
		return i.report, err
	}
	return i.report, s.Pipeline.Flush(ctx)
}

// isOwn reports whether an error is of the Service or what it works with, not
// of the export's reader.
func isOwn(err error) bool {
	kind, _ := Kind(err)
	return kind != "internal"
}

type importer struct {
	*intake
	ctx      context.Context
	p        Principal
	t        Target
	secret   []byte
	report   ImportReport
	progress func(ImportReport)
	from, to storage.Time
	batch    map[storage.Scope][]storage.Memory
	waiting  int
}

// importBatch is how many memories are saved at a time.
const importBatch = 200

func (i *importer) take(item imports.Item) error {
	if i.ctx.Err() != nil {
		return i.ctx.Err()
	}
	var err error
	if item.Conversation != nil {
		err = i.conversation(item.Conversation)
	} else {
		err = i.memory(item.Memory)
	}
	if err == nil && i.progress != nil && (i.report.Turns+i.report.Saved+i.report.Known)%100 == 0 {
		i.progress(i.report)
	}
	return err
}

// conversation hands in the turns of a conversation: what the user said, and
// the answer.
func (i *importer) conversation(c *imports.Conversation) error {
	scope, err := i.scope(i.p, i.t)
	if err != nil {
		return err
	}
	id := c.ID
	if id == "" {
		id = shortHash(c.Title, c.Messages[0].Text)
	}
	now := storage.TimeOf(i.Now())
	var turn persist.Turn
	var first string
	send := func() error {
		if len(turn.Messages) == 0 {
			return nil
		}
		turn.ID = turnID(i.secret, scope, "import", id, first)
		turn.Scope, turn.Conversation, turn.Source, turn.Finish, turn.KeptFrom = scope, id, facts.SourceImport, "stop", now
		if c.Project != "" {
			turn.Project = shortHash("project", c.Project)
		}
		i.report.Turns++
		if !i.report.DryRun {
			if err := i.Pipeline.Import(i.ctx, turn); err != nil {
				return err
			}
		}
		turn, first = persist.Turn{}, ""
		return nil
	}
	last := storage.Time(0)
	for n := range c.Messages {
		m := &c.Messages[n]
		role := storage.Role(m.Role)
		if n := len(turn.Messages); n > 0 && role == storage.RoleUser && turn.Messages[n-1].Role == storage.RoleAssistant {
			if err := send(); err != nil {
				return err
			}
		}
		last = max(storage.TimeOf(m.Time), last)
		if last == 0 {
			last = now
		}
		if i.from == 0 || last < i.from {
			i.from = last
		}
		i.to = max(i.to, last)
		if first == "" {
			if first = m.ID; first == "" {
				first = shortHash(m.Role, m.Text, fmt.Sprint(n))
			}
		}
		if m.Model != "" {
			turn.Model = m.Model
		}
		turn.Messages = append(turn.Messages, persist.Message{Role: role, Text: m.Text, Time: last})
		if len(turn.Messages) == importTurnMessages {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return send()
}

// importTurnMessages bounds the messages of one imported turn.
const importTurnMessages = 100

func shortHash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// memory saves a memory that another tool kept.
func (i *importer) memory(m *imports.Memory) error {
	t := i.t
	if t.User == "" && i.p.User == "" && m.User != "" && i.report.Format != "chatgpt" {
		t.User = m.User
	}
	if t.App == "" {
		t.App = m.App
	}
	scope, err := i.scope(i.p, t)
	if err != nil {
		return err
	}
	made, err := i.memories(m)
	if err != nil {
		i.report.Refused["invalid"]++
		return nil
	}
	if i.batch == nil {
		i.batch = map[storage.Scope][]storage.Memory{}
	}
	i.batch[scope] = append(i.batch[scope], made...)
	if i.waiting += len(made); i.waiting >= importBatch {
		return i.flush()
	}
	return nil
}

// flush saves what waits. It saves nothing in a dry run.
func (i *importer) flush() error {
	defer func() { i.batch, i.waiting = nil, 0 }()
	for scope, all := range i.batch {
		for batch := range slices.Chunk(all, importBatch) {
			if i.report.DryRun {
				continue
			}
			saved, err := i.remember(i.ctx, scope, batch)
			if err != nil {
				return err
			}
			if n := len(batch) - len(saved); n > 0 {
				i.report.Refused["secret"] += n
			}
			for k := range saved {
				if saved[k].Known {
					i.report.Known++
				} else {
					i.report.Saved++
				}
			}
		}
	}
	return nil
}

// memories returns what a memory of an export becomes: itself, or the passages
// of a text that is too long for one.
func (i *importer) memories(m *imports.Memory) ([]storage.Memory, error) {
	if len(m.Raw) > 0 {
		var own Memory
		if err := json.Unmarshal(m.Raw, &own); err != nil {
			return nil, err
		}
		return i.own(&own)
	}
	tags := slices.DeleteFunc(slices.Clone(m.Tags), func(tag string) bool { return tag == "" || len(tag) > MaxTag || internalTag(tag) })
	at := max(storage.TimeOf(m.CreatedAt), storage.TimeOf(m.UpdatedAt))
	out := storage.Memory{
		Kind: storage.KindFact, Text: m.Text, Tags: tags[:min(len(tags), MaxTags)], Conversation: m.Conversation, EventTime: at, Source: facts.SourceImport,
	}
	uri, _ := m.Metadata["resource_uri"].(string)
	if m.Kind != string(storage.KindResource) && checkText("text", m.Text) == nil {
		out.ID = "i" + shortHash(m.ID, m.Text)
		return []storage.Memory{out}, nil
	}
	if uri == "" {
		uri = "import:" + shortHash(m.ID, m.Text)
	}
	out.Kind, out.Priority, out.Confidence = storage.KindResource, resourcePriority, 1
	var all []storage.Memory
	for n, text := range documents.Passages(documents.Document{Text: m.Text, MediaType: "text/markdown"}, MaxText) {
		part := out
		part.ID, part.Text, part.Tags = resourceID(uri, n, text), text, append(slices.Clone(out.Tags), storage.ResourceTag+uri)
		part.Provenance.Seq = n
		if at != 0 {
			part.EventTime = at + storage.Time(n)
		}
		all = append(all, part)
	}
	return all, nil
}

// checkOwnText checks the length of a text of ours: that of a file is longer.
func checkOwnText(m *Memory) error {
	if m.Kind == string(storage.KindCurated) {
		return checkLength("text", m.Text, MaxFile)
	}
	return checkText("text", m.Text)
}

// own returns a memory of an export of ours as it was, but for what the store
// sets.
func (i *importer) own(m *Memory) ([]storage.Memory, error) {
	if m.State == StateDeleted || !slices.Contains(kinds, m.Kind) || checkOwnText(m) != nil || checkTags("tags", m.Tags) != nil {
		return nil, storage.ErrInvalid
	}
	times := map[string]storage.Time{}
	for field, v := range map[string]string{"eventTime": m.EventTime, "validFrom": m.ValidFrom, "validTo": m.ValidTo, "expiresAt": m.ExpiresAt} {
		at, err := parseTime(field, v)
		if err != nil {
			return nil, err
		}
		times[field] = at
	}
	out := storage.Memory{
		ID: m.ID, Kind: storage.Kind(m.Kind), Text: m.Text, Tags: slices.DeleteFunc(m.Tags, internalTag), Conversation: m.Conversation, Entities: m.Entities,
		Priority: m.Priority, Confidence: m.Confidence, Source: facts.SourceImport, EventTime: times["eventTime"], ValidFrom: times["validFrom"],
		ValidTo: times["validTo"], SupersededBy: m.SupersededBy,
		Provenance: storage.Provenance{Turn: m.Turn, Role: storage.Role(m.Role), Speaker: m.Speaker, Model: m.Model},
	}
	if out.Kind == storage.KindEpisode {
		_, seq, _ := strings.Cut(m.ID, ".")
		if _, err := fmt.Sscanf(seq, "%d", &out.Provenance.Seq); err != nil || m.ID != storage.TurnMemoryID(m.Turn, out.Provenance.Seq) {
			return nil, storage.ErrInvalid
		}
	}
	if out.ID == "" || len(out.ID) > storage.MaxID {
		out.ID = "i" + shortHash(m.Text)
	}
	if m.ResourceURI != "" {
		out.Tags = append(out.Tags, storage.ResourceTag+m.ResourceURI)
	}
	if m.Directory != "" {
		out.Tags = append(out.Tags, storage.ProjectTag+m.Directory)
	}
	if at := times["expiresAt"]; at > storage.TimeOf(i.Now()) {
		out.ExpiresAt = at
	}
	return []storage.Memory{out}, nil
}

// Formats of an export.
const (
	FormatRemora   = "remora"   // JSON lines: a Memory each
	FormatMem0     = "mem0"     // {"results": [...]}, as mem0's get_all answers
	FormatMarkdown = "markdown" // for people
)

// ExportFormats lists them.
func ExportFormats() []string { return []string{FormatRemora, FormatMem0, FormatMarkdown} }

// Export writes all memories that the principal may reach by a target, as they
// are read: it holds a page at a time.
func (s *intake) Export(ctx context.Context, p Principal, t Target, format string, write func([]byte) error) error {
	if format == "" {
		format = FormatRemora
	}
	if !slices.Contains(ExportFormats(), format) {
		return invalid("format", "must be one of %s", strings.Join(ExportFormats(), ", "))
	}
	want, err := s.partial(p, t)
	if err != nil {
		return err
	}
	w := exporter{intake: s, write: write, format: format}
	if err := w.begin(); err != nil {
		return err
	}
	for page, err := range scopePages(ctx, s.Store, "") {
		if err != nil {
			return err
		}
		for _, scope := range page.Scopes {
			if !covers(want, scope) {
				continue
			}
			if err := w.scope(ctx, scope); err != nil {
				return err
			}
		}
	}
	return w.end()
}

type exporter struct {
	*intake
	write  func([]byte) error
	format string
	n      int
}

func (w *exporter) begin() error {
	switch w.format {
	case FormatMem0:
		return w.write([]byte(`{"results":[`))
	case FormatMarkdown:
		return w.write([]byte("# What is remembered\n"))
	}
	return nil
}

func (w *exporter) end() error {
	if w.format == FormatMem0 {
		return w.write([]byte("]}\n"))
	}
	return nil
}

func (w *exporter) scope(ctx context.Context, scope storage.Scope) error {
	headed := false
	for page, err := range storage.ScanPages(ctx, w.Store, scope, storage.Query{}) {
		if err != nil {
			return err
		}
		for i := range page.Memories {
			m := &page.Memories[i]
			if m.DeletedAt != 0 {
				continue
			}
			if w.format == FormatMarkdown && !headed {
				headed = true
				if err := w.write(fmt.Appendf(nil, "\n## %s\n\n", w.show(m).User)); err != nil {
					return err
				}
			}
			line, err := w.line(m)
			if err != nil {
				return err
			}
			if err := w.write(line); err != nil {
				return err
			}
			w.n++
		}
	}
	return nil
}

func (w *exporter) line(m *storage.Memory) ([]byte, error) {
	shown := w.show(m)
	switch w.format {
	case FormatMarkdown:
		return fmt.Appendf(nil, "- %.10s %s%s: %s\n", shown.EventTime, shown.Kind, map[bool]string{true: " (" + shown.State + ")"}[shown.State != StateCurrent],
			strings.Join(strings.Fields(shown.Text), " ")), nil
	case FormatMem0:
		metadata := map[string]any{"kind": shown.Kind, "priority": shown.Priority, "state": shown.State}
		if shown.Conversation != "" {
			metadata["conversation"] = shown.Conversation
		}
		line, err := json.Marshal(map[string]any{
			"id": shown.ID, "memory": shown.Text, "user_id": shown.User, "categories": shown.Tags, "metadata": metadata,
			"created_at": shown.CreatedAt, "updated_at": shown.UpdatedAt,
		})
		if w.n > 0 {
			line = append([]byte(",\n"), line...)
		}
		return line, err
	}
	line, err := json.Marshal(&shown)
	return append(line, '\n'), err
}
