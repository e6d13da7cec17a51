package main

import (
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/persist/distill"
	"github.com/remora-proxy/remora/proxy"
	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/embed"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage/badger"
)

// config is everything that can be set: the typed configurations of the packages, and what only this program knows.
// settings() says under which keys a person sets them.
type config struct {
	source string // the file that was read, "" = none

	server     proxy.ServerConfig
	forward    proxy.ForwardConfig
	caCert     string // of the forward door's authority; "" = there is no place for it
	caKey      string
	proxy      proxy.Config
	recall     recall.Config
	embeddings embed.Config
	persist    persist.Config
	distill    distill.Config
	redact     redact.Config
	storage    badger.Config
	storageKey redact.Secret
	reapEvery  time.Duration // 0 = never
	store      storeConfig
	log        logConfig
	memory     int64 // what the runtime of this process is to stay below; 0 = no limit

	// keyless says why there is no key for the store and none may be generated; "" = there is one.
	keyless string
}

// defaultConfig has no forward door: it is opened by naming its address.
func defaultConfig() config {
	c := config{
		server:     proxy.DefaultServerConfig(),
		forward:    proxy.DefaultForwardConfig(),
		proxy:      proxy.DefaultConfig(),
		recall:     recall.DefaultConfig(),
		embeddings: embed.DefaultConfig(),
		persist:    persist.DefaultConfig(),
		distill:    distill.DefaultConfig(),
		redact:     redact.DefaultConfig(),
		storage:    badger.DefaultConfig(),
		store:      defaultStoreConfig(),
		log:        logConfig{level: levelInfo, format: formatAuto},

		reapEvery: defaultReapInterval,
	}
	c.forward.Listen = ""
	c.persist.Workers = 0 // settle knows the machine
	return c
}

// oneUpstream sends every path to url.
func (c *config) oneUpstream(url string) {
	c.proxy.Upstreams = []httpclient.UpstreamConfig{{Name: "upstream", URL: url, Paths: []string{"/"}}}
}

// settle fills in what depends on the machine and on other settings.
func (c *config) settle(where place) {
	if c.persist.Workers == 0 {
		c.persist.Workers = persist.DefaultConfig().Workers
	}
	c.memory = c.ownMemory(where.memory)
	c.storage.MemoryBytes = c.store.memoryBytes
	c.persist.MaxWrite = c.storage.MaxWrite()
	c.proxy.RecallDeadline, c.proxy.FirstDeadline = c.recall.Deadline, c.recall.FirstDeadline
	c.server.WriteIdle = c.proxy.Streams.WriteIdle
	c.proxy.Identity.Loopback = loopback(c.server.Listen) && (c.forward.Listen == "" || loopback(c.forward.Listen))
	c.proxy.Identity.Container = where.container
	if c.storage.Dir == "" {
		c.storage.Dir = where.dataDir()
	}
	if c.caCert == "" && where.configDir() != "" {
		c.caCert = filepath.Join(where.configDir(), "ca.pem")
	}
	if c.caKey == "" && c.caCert != "" {
		c.caKey = filepath.Join(filepath.Dir(c.caCert), "ca.key")
	}
	if c.storage.KeyFile == "" && c.storageKey == "" {
		c.keyless = c.defaultKeyFile(where)
	} else {
		c.storage.NewKey = namedKeyFile(c.storage.KeyFile, c.storage.Dir, where)
	}
}

// namedKeyFile: where somebody has named the key file, it may well be on a volume that is not mounted right now. A key made in its place
// would be gone at the next start, and the memories with it.
func namedKeyFile(keyFile, dir string, where place) badger.NewKeyPlace {
	if where.passing != nil && where.passing(keyFile) && !where.passing(dir) {
		return badger.NewKeyNowhere
	}
	return badger.NewKeyOnMount
}

// defaultKeyFile sets the key file where a person runs Remora on a machine of theirs. In a container the file would go
// away with the container, and the memories with it, so there the place of the key must be said. There is one such file for all stores of a
// person's: only the one in the default directory may have it for its own.
func (c *config) defaultKeyFile(where place) (keyless string) {
	switch {
	case where.container:
		return "in a container the key must be named: set storage.keyFile (REMORA_STORAGE_KEY_FILE) to a file on a volume or to a mounted secret"
	case where.keyFile() == "":
		return "no home directory to keep the key in: set storage.keyFile (REMORA_STORAGE_KEY_FILE)"
	}
	c.storage.KeyFile = where.keyFile()
	if !samePath(c.storage.Dir, where.dataDir()) {
		c.storage.NewKey = badger.NewKeyBeside
	}
	return ""
}

// samePath may say no of one place by two names.
func samePath(a, b string) bool {
	a, errA := filepath.Abs(a)
	b, errB := filepath.Abs(b)
	return a == b && errA == nil && errB == nil
}

// loopback says whether a listen address can be reached from this machine only.
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

// validate asks every package for all that it finds wrong, under the keys that a person knows.
func (c *config) validate(found *problems, origins map[string]string) {
	if c.storage.Dir == "" {
		found.add("storage.dir", "", "no home directory to keep memories in; set it, or --data")
	}
	if c.storageKey != "" {
		key, err := badger.ParseKey([]byte(c.storageKey.Reveal()))
		if err != nil {
			found.add("storage.key", origins["storage.key"], "must be 32 bytes, as hex or base64")
		}
		c.storage.Key = key
	}
	if c.reapEvery != 0 && c.reapEvery < minReapInterval {
		found.add("storage.reapInterval", origins["storage.reapInterval"], "must be at least 1s, or 0s")
	}
	table := c.settings()
	found.addAll("", c.proxy.Validate(), origins, table)
	found.addAll("server", c.server.Validate(), origins, table)
	forward := c.forward
	if forward.Listen == "" { // no door, but the rest of it is for 'remora ca' too
		forward.Listen = proxy.DefaultForwardConfig().Listen
	}
	found.addAll("forward", forward.Validate(), origins, table)
	found.addAll("recall", c.recall.Validate(), origins, table)
	found.addAll("recall.embeddings", c.embeddings.Validate(), origins, table)
	found.addAll("persist", c.persist.Validate(), origins, table)
	found.addAll("distill", c.distill.Validate(), origins, table)
	found.addAll("redact", c.redact.Validate(), origins, table)
	found.addAll("storage", c.store.validate(), origins, table)
	c.addresses(found, origins)
}
