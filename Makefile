# What each target does is in CONTRIBUTING.md.
FUZZTIME  ?= 10s
LINT      := golangci-lint
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
VERSION   ?= $(shell git describe --tags --dirty 2>/dev/null)
COMMIT    ?= $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS   := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
# The same sources, version and commit give the same bytes in every checkout. Releases and the image are built so too.
GOBUILD   := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)'

.PHONY: build test manifests lint actionlint vulnerabilities fuzz bench docs screenshot cast cross ci

build:
	$(GOBUILD) -o bin/ ./cmd/remora ./cmd/remora-bench

test:
	test -z "$$(gofmt -l . | tee /dev/stderr)"
	go vet ./...
	go tool staticcheck ./...
	go test -race -timeout 45m ./...
	go test -timeout 20m -run '^TestPage$$' ./cmd/remora # a browser, without the race detector

# What is in deploy/helm, deploy/kustomize and deploy/snippets. A module of its own: its dependencies are not Remora's.
manifests:
	cd deploy/check && go vet ./... && go test ./...

lint:
	$(LINT) run ./...

# Checks the workflows, and the shell scripts in them where shellcheck is installed.
actionlint:
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

# Asks the Go vulnerability database, so it needs a network.
vulnerabilities:
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

# Every fuzz target of every package, $(FUZZTIME) each.
fuzz:
	.ci/fuzz $(FUZZTIME)

bench: build
	bin/remora-bench load

# Regenerates config.example.json and docs/configuration.md from the table of settings,
# api/reference.html from api/openapi.yaml, and the licences of what is linked.
docs:
	go generate ./cmd/remora/config ./api ./telemetry ./cmd/remora/notices

# Makes docs/page.png, the picture of the control plane's page. It needs Chromium and $REMORA_NODE_MODULES.
screenshot:
	REMORA_PAGE_PICTURE=$(CURDIR)/docs/page.png go test ./cmd/remora -run 'TestPage$$/^screenshot$$' -count=1 -v

# Makes docs/demo.svg, a recording of `remora demo`.
cast:
	REMORA_CAST=$(CURDIR)/docs/demo.svg go test ./cmd/remora -run 'TestDemoCast$$' -count=1

cross:
	@for p in $(PLATFORMS); do \
	  echo "$$p"; \
	  GOOS=$${p%/*} GOARCH=$${p#*/} $(GOBUILD) -o dist/remora-$${p%/*}-$${p#*/} ./cmd/remora || exit 1; \
	done

ci:
	CI=true .ci/run
