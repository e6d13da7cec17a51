// Package config is everything a person can set: one table of settings, read
// from a JSON file, REMORA_* variables and flags, and the typed configurations
// of the other packages that the settings fill in.
//
// The table (settings.go) is the only place that knows a setting's key,
// default, limits and meaning. The file, the environment, `remora check`,
// config.example.json and docs/configuration.md are made from it. A number
// outside its limits is never assigned. [Load] reports all problems at once,
// each with its key and the place where it was given.
//
// Load reads the configuration file, mounted secrets and the certificate
// authorities of upstreams, each up to 1 MiB. It opens no connection and
// changes nothing. Secrets are never shown.
package config

//go:generate go test . -run "TestExampleEqualsDefaults|TestConfigurationDocs|TestRedactionRulesPage" -update

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/mcp"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/persist/distill"
	"github.com/remora-proxy/remora/proxy"
	"github.com/remora-proxy/remora/proxy/backend"
	"github.com/remora-proxy/remora/proxy/forward"
	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/listener"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/embed"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage/badger"
	"github.com/remora-proxy/remora/storage/process"
)

// Config holds the configuration of every package, and what only the program
// itself needs.
type Config struct {
	File string // the configuration file that was read, "" = none

	Server     listener.Config
	Forward    forward.Config // Listen "" = no forward listener
	CACert     string         // path of the authority's certificate, "" where no home directory is known
	CAKey      string
	Proxy      proxy.Config
	Recall     recall.Config
	Embeddings embed.Config
	Persist    persist.Config
	Distill    distill.Config
	Redact     redact.Config
	Storage    badger.Config
	Store      Store
	API        API
	Backend    backend.Config // whose memory the proxy works with
	Log        Log
	Health     string // address of the health listener, "" = none

	// Exchanges is how many requests all listeners serve at the same time.
	Exchanges int

	// MemoryTool saves what models save with a memory tool of their client's.
	MemoryTool bool

	// MemoryLimit is the soft memory limit for the Go runtime of the proxy's
	// process, in bytes; 0 = none.
	MemoryLimit int64
	// NoKey is the reason why there is no key for the store and none may be
	// generated; "" = there is one.
	NoKey string

	storageKey redact.Secret // as given; Storage.Key is the decoded key
	loaded     *loaded       // nil = this was not loaded
}

// Store configures where and how the store runs.
type Store struct {
	Isolation    string // IsolationProcess or IsolationInline
	SetAside     bool   // a damaged store is renamed and a new one made
	ReserveBytes uint64 // size of the file that is deleted when the disk is full, 0 = none
	MemoryBytes  int64  // soft memory limit of the store's process
	ClockFile    string // for tests, see storage.FollowClock; "" = the machine's clock
	Process      process.Config
}

// API configures the control plane.
type API struct {
	Listen string // host:port, or APIOff
	// Token is the admin token; "" = the one in the file, which is generated.
	Token redact.Secret
	Hosts []string // names by which it may be called on loopback
	// Receipts keeps what requests were given, for ReceiptRetention.
	Receipts         bool
	ReceiptRetention time.Duration
	MCP              []string // sets of tools besides Remora's own
	Prices           []api.Price
}

// APIOff is the address of a control plane that does not run.
const APIOff = "off"

// DefaultAPI is the default address of the control plane.
const DefaultAPI = "127.0.0.1:8788"

// Required reports whether it is an error if the address can't be listened on.
// It is not for the default: another Remora may run.
func (a API) Required() bool { return a.Listen != DefaultAPI }

// Loopback reports whether the control plane can be reached from this machine
// only.
func (a API) Loopback() bool { return loopback(a.Listen) }

// HealthLoopback reports whether the health listener can be reached from this
// machine only.
func (c *Config) HealthLoopback() bool { return loopback(c.Health) }

// Where the store runs.
const (
	IsolationProcess = "process"
	IsolationInline  = "inline"
)

// Log configures what is logged and how.
type Log struct {
	Level  string // as slog names it, in lower case
	Format string
}

// SlogLevel returns the level for package slog.
func (l Log) SlogLevel() slog.Level {
	var level slog.Level                     // info
	_ = level.UnmarshalText([]byte(l.Level)) // the table admits slog's names only
	return level
}

// Formats of the log.
const (
	FormatAuto = "auto" // text on a terminal, JSON elsewhere
	FormatText = "text"
	FormatJSON = "json"
)

// Default returns the defaults that don't depend on the machine. It has no
// forward listener.
func Default() Config {
	c := Config{
		Server:     listener.DefaultConfig(),
		Forward:    forward.DefaultConfig(),
		Proxy:      proxy.DefaultConfig(),
		Recall:     recall.DefaultConfig(),
		Embeddings: embed.DefaultConfig(),
		Persist:    persist.DefaultConfig(),
		Distill:    distill.DefaultConfig(),
		Redact:     redact.DefaultConfig(),
		Storage:    badger.DefaultConfig(),
		Store: Store{
			Isolation: IsolationProcess, SetAside: true, ReserveBytes: 32 << 20, MemoryBytes: 128 << 20,
			Process: process.DefaultConfig(),
		},
		Backend:   backend.DefaultConfig(),
		API:       API{Listen: DefaultAPI, Receipts: true, ReceiptRetention: 30 * 24 * time.Hour},
		Log:       Log{Level: "info", Format: FormatAuto},
		Exchanges: 10_000,
	}
	c.Forward.Listen = ""
	return c
}

// SetUpstream sends every path to url.
func (c *Config) SetUpstream(url string) {
	c.Proxy.Upstreams = []httpclient.UpstreamConfig{{Name: "upstream", URL: url, Paths: []string{"/"}}}
}

// Settle fills in what depends on the machine and on other settings.
func (c *Config) Settle(where Place) {
	c.MemoryLimit = c.memoryLimit(where.memory)
	c.Storage.MemoryBytes = c.Store.MemoryBytes
	c.Persist.MaxWrite = c.Storage.MaxWrite()
	c.Persist.Facts.KeepLonger = max(c.Persist.Facts.KeepLonger, c.Persist.Audit.Threshold)
	c.Proxy.RecallDeadline, c.Proxy.FirstDeadline = c.Recall.Deadline, c.Recall.FirstDeadline
	switch c.Backend.Mode {
	case backend.ModeGateway: // a server elsewhere takes longer than an index in memory
		wait := min(c.Backend.Gateway.RecallTimeout, c.Backend.Gateway.Timeout)
		c.Proxy.RecallDeadline, c.Proxy.FirstDeadline = wait, wait
	case backend.ModeCurated: // a snapshot for each conversation
		c.Proxy.Injection.Placement = proxy.PlacementSystem
		if !slices.Contains(c.API.MCP, mcp.SetMemory) { // which alone writes the files
			c.API.MCP = append(slices.Clip(c.API.MCP), mcp.SetMemory)
		}
		c.Backend.Curated.MaxBytes = max(2*c.Proxy.Ledger.MaxTokens-curatedMargin, 1)
	}
	c.Server.WriteIdle = c.Proxy.Streams.WriteIdle
	c.Forward.DialTimeout = c.Proxy.Transport.DialTimeout
	c.Proxy.Identity.Loopback = loopback(c.Server.Listen) && (c.Forward.Listen == "" || loopback(c.Forward.Listen))
	c.Proxy.Identity.Container = where.container
	if c.Storage.Dir == "" {
		c.Storage.Dir = where.dataDir()
	}
	if c.CACert == "" && where.configDir() != "" {
		c.CACert = filepath.Join(where.configDir(), "ca.pem")
	}
	if c.CAKey == "" && c.CACert != "" {
		c.CAKey = filepath.Join(filepath.Dir(c.CACert), "ca.key")
	}
	if c.Storage.KeyFile == "" && c.storageKey == "" {
		c.NoKey = c.useDefaultKeyFile(where)
	} else {
		c.Storage.NewKey = newKeyPlace(c.Storage.KeyFile, c.Storage.Dir, where)
	}
}

// curatedMargin is what a block of curated files has besides their lines, in
// bytes.
const curatedMargin = 1000

// newKeyPlace returns where a key may be generated for a key file that was
// named. If the file would be on the container's own disk while the data is on
// a volume, the key's volume is probably not mounted: a key generated there
// would be lost with the container, and the memories with it.
func newKeyPlace(keyFile, dir string, where Place) badger.NewKeyPlace {
	if where.ephemeral != nil && where.ephemeral(keyFile) && !where.ephemeral(dir) {
		return badger.NewKeyNowhere
	}
	return badger.NewKeyOnMount
}

// useDefaultKeyFile sets the key file for a person who runs Remora on their own
// machine, or returns the reason why there is none. In a container the default
// file would be lost with the container, so the key must be named there. All
// stores of a person share the default file; a store outside the default
// directory gets a key of its own next to it.
func (c *Config) useDefaultKeyFile(where Place) (noKey string) {
	switch {
	case where.container:
		return "in a container the key must be named: set storage.keyFile (REMORA_STORAGE_KEY_FILE) to a file on a volume or to a mounted secret"
	case where.keyFile() == "":
		return "no home directory to keep the key in: set storage.keyFile (REMORA_STORAGE_KEY_FILE)"
	}
	c.Storage.KeyFile = where.keyFile()
	if !samePath(c.Storage.Dir, where.dataDir()) {
		c.Storage.NewKey = badger.NewKeyBeside
	}
	return ""
}

// samePath compares absolute paths. It does not follow links.
func samePath(a, b string) bool {
	a, errA := filepath.Abs(a)
	b, errB := filepath.Abs(b)
	return a == b && errA == nil && errB == nil
}

// loopback reports whether a listen address can be reached from this machine
// only.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// validate reports everything that is wrong, apart from numbers.
func (c *Config) validate(r *report) {
	if c.Storage.Dir == "" {
		r.add("storage.dir", "no home directory to keep memories in; set it, or --data")
	}
	if c.storageKey != "" {
		key, err := badger.ParseKey([]byte(c.storageKey.Reveal()))
		if err != nil {
			r.add("storage.key", "must be 32 bytes, as hex or base64")
		}
		c.Storage.Key = key
	}
	fw := c.Forward
	if fw.Listen == "" { // no listener, but the rest of it configures 'remora ca' too
		fw.Listen = forward.DefaultConfig().Listen
	}
	for _, section := range []struct {
		name string
		err  error
	}{
		{"", c.Proxy.Validate()},
		{"", c.Server.Validate()},
		{"", c.Backend.Validate()},
		{"forward", fw.Validate()},
		{"recall", c.Recall.Validate()},
		{"recall.embeddings", c.Embeddings.Validate()},
		{"persist", c.Persist.Validate()},
		{"distill", c.Distill.Validate()},
		{"redact", c.Redact.Validate()},
		{"storage", c.Store.Process.Validate()},
	} {
		r.addAll(section.name, section.err)
	}
	c.checkAddresses(r)
	c.checkPrices(r)
}

// checkPrices reports prices that can't be used.
func (c *Config) checkPrices(r *report) {
	if len(c.API.Prices) > api.MaxPrices {
		r.add("api.prices", fmt.Sprintf("must be at most %d", api.MaxPrices))
	}
	for i := range c.API.Prices {
		r.addAll(fmt.Sprintf("api.prices[%d]", i), c.API.Prices[i].Validate())
	}
}
