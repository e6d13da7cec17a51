package page

import (
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/imports"
	"github.com/remora-proxy/remora/api/request"
	"github.com/remora-proxy/remora/persist/facts"
)

// importView asks for an export of another tool.
type importView struct {
	base
	Tools   []tool
	Format  string // that was chosen
	For     string // the user whose memory it becomes
	Fixed   bool   // that is the only user there is
	Problem string
	Last    *upload // of the same browser, that can be continued
}

// tool is one whose exports can be read.
type tool struct {
	Format, Name string
	How          string // how its export is got
}

// tools are those of imports.Formats.
var tools = []tool{
	{"chatgpt", "ChatGPT", "Settings, Data controls, Export data. A link to a zip comes by mail; give the zip as it is."},
	{"claude", "Claude", "Settings, Privacy, Export data. A link to a zip comes by mail; give the zip as it is."},
	{"claude-code", "Claude Code", "Its conversations are in ~/.claude/projects. Give one .jsonl file, or a zip of the folder."},
	{"codex", "Codex", "Its sessions are in ~/.codex/sessions. Give one rollout-….jsonl file, or a zip of the folder."},
	{"gemini-cli", "Gemini CLI", "Its chats are in ~/.gemini/tmp. Give one session-….json or checkpoint-….json file, or a zip of the folder."},
	{"opencode", "opencode", "“opencode export ID > session.json” writes one session. Give the file, or a zip of several."},
	{"mem0", "mem0", "Save what client.get_all(...) returns as a .json file, or use the export of its dashboard."},
	{"openmemory", "OpenMemory", "Export in its dashboard writes a zip; give it as it is, or memories.json."},
	{"remora", "Remora", "Export in the view People of another Remora, in the format Remora."},
}

func toolName(format string) string {
	i := slices.IndexFunc(tools, func(t tool) bool { return t.Format == format })
	if i < 0 {
		return format
	}
	return tools[i].Name
}

// uploader returns who sends an upload, or asks for one.
func uploader(c *call) owner { return owner{c.session, c.p} }

// showImport asks for an export.
func showImport(c *call) error {
	v, err := importForm(c)
	if err != nil {
		return err
	}
	v.Last = c.uploads.last(uploader(c))
	c.render(http.StatusOK, "import", v)
	return nil
}

func importForm(c *call) (importView, error) {
	b, err := c.begin("Import", "import")
	return importView{base: b, Tools: tools, For: b.Whose.User, Fixed: c.p.User != ""}, err
}

// last returns the owner's upload, nil if there is none.
func (u *uploads) last(o owner) *upload {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, up := range u.byID {
		if up.owner == o && up.state != uploadComing {
			found := *up
			return &found
		}
	}
	return nil
}

// Max is how many bytes a file may have.
func (importView) Max() int { return api.MaxImport }

// Where returns the path of an upload's own view.
func (v importView) Where() string { return v.Link("/import/" + v.Last.id) }

// Running reports whether an upload is being imported.
func (up *upload) Running() bool { return up.state == uploadRunning }

// Over reports whether an upload has been imported.
func (up *upload) Over() bool { return up.state == uploadDone }

// Name returns the name of an upload's file.
func (up *upload) Name() string { return up.name }

// takeUpload takes an export, counts what is in it, and leads to the view that
// asks whether to import it.
func takeUpload(c *call) error {
	up, err := receive(c)
	if err == nil {
		return c.redirect(base{Whose: up.whose}.Link("/import/" + up.id))
	}
	_, status := api.Kind(err)
	if status == http.StatusInternalServerError {
		c.log.Error("an upload failed", "request", c.w.Header().Get(request.HeaderID), "error", err)
	}
	v, failed := importForm(c)
	if failed != nil {
		return failed
	}
	v.Format, v.Problem = c.r.Form.Get("format"), complaint(err)
	if named := c.r.Form.Get("for"); named != "" {
		v.For = named
	}
	c.render(status, "import", v)
	return nil
}

// complaint returns what is wrong with an upload, for people.
func complaint(err error) string {
	for _, own := range [...]error{errUploadsFull, errUploadRunning, errImportRunning, errClosing} {
		if errors.Is(err, own) {
			return sentence(strings.TrimSuffix(own.Error(), ": "+api.ErrBusy.Error()))
		}
	}
	if field, ok := errors.AsType[*api.FieldError](err); ok && field.Field == "body" {
		return sentence("this file can't be imported: " + field.Why)
	}
	if errors.Is(err, api.ErrTooLarge) {
		return "The file is larger than " + size(api.MaxImport) + ", which is the most that can be imported at a time."
	}
	return sentence(api.Detail(err))
}

// Bounds of the form around an upload.
const (
	maxParts     = 8
	maxPartField = 1 << 10 // bytes
)

var (
	errNoFile   = &api.FieldError{Field: "file", Why: "is missing: choose one first"}
	errBroken   = &api.FieldError{Field: "body", Why: "broke off"}
	errTwoFiles = &api.FieldError{Field: "file", Why: "must be one: put several into a zip"}
)

// receive reads the form, and counts what is in its file.
func receive(c *call) (*upload, error) {
	c.r.Form = url.Values{}
	if c.r.ContentLength > api.MaxImport+maxForm {
		return nil, api.ErrTooLarge
	}
	c.r.Body = http.MaxBytesReader(c.w, c.r.Body, api.MaxImport+maxForm)
	parts, err := c.r.MultipartReader()
	if err != nil {
		return nil, &api.FieldError{Field: "body", Why: "is no form that can be read"}
	}
	up, err := c.uploads.reserve(uploader(c), c.whose, "")
	if err != nil {
		return nil, err
	}
	kept := false
	defer func() { // also after a panic
		if !kept {
			c.uploads.drop(up)
		}
	}()
	found, err := takeParts(c, up, parts)
	if err != nil {
		return nil, err
	}
	kept = true
	c.uploads.ready(up, found)
	return up, nil
}

// takeParts saves the file of a form, reads its other fields and counts what is
// in the file.
func takeParts(c *call, up *upload, parts *multipart.Reader) (found api.ImportReport, err error) {
	for range maxParts {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = takePart(c, up, part)
		} else {
			err = errBroken
		}
		if err != nil {
			return found, err
		}
	}
	if up.file == nil {
		return found, errNoFile
	}
	up.format = c.r.Form.Get("format")
	if named := c.r.Form.Get("for"); named != "" {
		c.whose.User = named
	}
	if up.whose, err = c.service.Owner(c.p, c.whose); err != nil {
		return found, err
	}
	c.whose = up.whose
	return importerOf(c, up, true)(c.ctx, up.file.Path, nil)
}

func takePart(c *call, up *upload, part *multipart.Part) (err error) {
	switch {
	case part.FormName() != "file":
		text, err := io.ReadAll(io.LimitReader(part, maxPartField))
		if err != nil {
			return errBroken
		}
		c.r.Form.Set(part.FormName(), strings.TrimSpace(string(text)))
	case part.FileName() == "": // none was chosen
	case up.file != nil:
		return errTwoFiles
	default:
		up.file, err = request.SaveUpload(part.FileName(), part)
	}
	return err
}

// importerOf returns what reads an upload. With dry it stores nothing.
func importerOf(c *call, up *upload, dry bool) importer {
	service, p, whose, options := c.service, c.p, up.whose, api.ImportOptions{Format: up.format, DryRun: dry}
	return func(ctx context.Context, path string, progress func(api.ImportReport)) (api.ImportReport, error) {
		fsys, closer, err := imports.Open(path)
		if err != nil {
			return api.ImportReport{}, &api.FieldError{Field: "body", Why: "is no export that can be read"}
		}
		defer func() { _ = closer.Close() }()
		return service.Import(ctx, p, whose, fsys, options, progress)
	}
}

// runImport imports an upload, or throws it away.
func runImport(c *call) error {
	form, err := c.form()
	if err != nil {
		return err
	}
	id := c.r.PathValue("id")
	up, err := c.uploads.find(id, uploader(c))
	if err != nil {
		return err
	}
	b := base{Whose: up.whose}
	to := b.Link("/import/" + id)
	switch form.Get("do") {
	case "import":
		err = c.uploads.start(id, uploader(c), importerOf(c, &up, false), c.now)
	case "discard":
		if err = c.uploads.discard(id, uploader(c)); err == nil {
			c.session.say(flash{Text: "The file was removed. Nothing was imported."})
			to = b.Link("/import")
		}
	default:
		err = errDo
	}
	if errors.Is(err, api.ErrBusy) {
		c.session.say(flash{Text: complaint(err), Bad: true})
		err = nil
	}
	if err != nil {
		return err
	}
	return c.redirect(to)
}

// importingView is an upload: what is in it, how far its import is, or what has
// become of it.
type importingView struct {
	base
	*upload
	Tool    string
	Problem string
}

// showUpload shows an upload.
func showUpload(c *call) error {
	up, err := c.uploads.find(c.r.PathValue("id"), uploader(c))
	if err != nil {
		return err
	}
	c.whose = up.whose
	v := importingView{base: base{Whose: up.whose, Path: c.r.URL.RequestURI()}, upload: &up, Tool: toolName(up.found.Format)}
	if up.problem != nil {
		v.Problem = complaint(up.problem)
	}
	if c.partial() {
		c.renderPart("importing", "state", v)
		return nil
	}
	if v.base, err = c.begin("Import", "import"); err != nil {
		return err
	}
	c.render(http.StatusOK, "importing", v)
	return nil
}

// Self returns the path of the view.
func (v importingView) Self() string { return v.Link("/import/" + v.id) }

// Found returns what is in the export.
func (v importingView) Found() api.ImportReport { return v.found }

// Done returns what has become of the export so far.
func (v importingView) Done() api.ImportReport { return v.done }

// Broken reports whether an import has failed.
func (v importingView) Broken() bool { return v.problem != nil }

// All is how many turns and memories there are to import.
func (v importingView) All() int { return v.found.Turns + v.found.Memories }

// Handled is how many of them have been.
func (v importingView) Handled() int {
	n := v.done.Turns + v.done.Saved + v.done.Known
	for _, refused := range v.done.Refused {
		n += refused
	}
	return min(n, v.All())
}

// Source is that of imported memories, which a list can be limited to.
func (importingView) Source() string { return facts.SourceImport }

// LeftOut returns what the reader left out, the largest count first.
func (v importingView) LeftOut() []namedCount { return countsOf(v.found.Rejected, rejections) }

// Refused returns what is not stored, the largest count first.
func (v importingView) Refused() []namedCount {
	if v.Over() {
		return countsOf(v.done.Refused, refusals)
	}
	return countsOf(v.found.Refused, refusals)
}

// rejections are reasons of package imports.
var rejections = map[string]string{
	"hidden":        "message that the tool set up and never showed|messages that the tool set up and never showed",
	"weight0":       "message that was not a part of what was sent|messages that were not a part of what was sent",
	"recipient":     "message to a tool|messages to a tool",
	"doNotRemember": "conversation that was excluded from memory|conversations that were excluded from memory",
	"sidechain":     "message of a subagent|messages of subagents",
	"tool":          "call of a tool, or its result|calls of tools and their results",
	"thinking":      "thinking of the model",
	"synthetic":     "text that the client wrote in the person's place",
	"error":         "error of the client in place of an answer|errors of the client in place of an answer",
	"superseded":    "interim answer before the last one|interim answers before the last one",
	"notUser":       "message that was neither the person's nor the assistant's|messages that were neither the person's nor the assistant's",
	"empty":         "message or memory without text|messages and memories without text",
	"notActive":     "memory that is paused, archived or deleted|memories that are paused, archived or deleted",
	"duplicate":     "memory that the export brings twice|memories that the export brings twice",
	"heading":       "heading among memories|headings among memories",
	"unknownType":   "content of no known kind",
}

var refusals = map[string]string{
	"invalid": "memory that breaks a limit of length or form|memories that break a limit of length or form",
	"secret":  "memory with a secret in it, or nothing left once it is redacted|memories with a secret in them, or nothing left once they are redacted",
}
