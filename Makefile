# What each target does is in CONTRIBUTING.md.
FUZZTIME  ?= 10s
LINT      := golangci-lint
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
VERSION   ?= $(shell git describe --tags --dirty 2>/dev/null)
LDFLAGS   := -s -w -X main.version=$(VERSION)

.PHONY: build test lint fuzz bench docs screenshot cross ci

build:
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/remora ./cmd/remora-bench

test:
	test -z "$$(gofmt -l api background cmd proxy recall persist redact storage text | tee /dev/stderr)"
	go vet ./...
	go tool staticcheck ./...
	go test -race -timeout 45m ./...
	go test -timeout 20m -run '^TestPage$$' ./cmd/remora # a browser, without the race detector

lint:
	$(LINT) run ./...

# Every fuzz target of every package, $(FUZZTIME) each.
fuzz:
	.ci/fuzz $(FUZZTIME)

bench: build
	bin/remora-bench load

# Regenerates config.example.json and docs/configuration.md from the table of settings, and
# api/reference.html from api/openapi.yaml.
docs:
	go generate ./cmd/remora/config ./api

# Makes docs/page.png, the picture of the control plane's page. It needs Chromium and $REMORA_NODE_MODULES.
screenshot:
	REMORA_PAGE_PICTURE=$(CURDIR)/docs/page.png go test ./cmd/remora -run 'TestPage$$/^screenshot$$' -count=1 -v

cross:
	@for p in $(PLATFORMS); do \
	  echo "$$p"; \
	  CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build -trimpath -ldflags '$(LDFLAGS)' \
	    -o dist/remora-$${p%/*}-$${p#*/} ./cmd/remora || exit 1; \
	done

ci:
	CI=true .ci/run
