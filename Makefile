# Everyday commands. The plain ones are go run ./cmd/gateway serve and go test ./...

FUZZTIME ?= 30s

.PHONY: build test race brokers lint fuzz bench check

build:
	CGO_ENABLED=0 go build -trimpath -o bin/gateway ./cmd/gateway

test:
	go test ./...

race:
	go test -race -timeout=20m ./...

# Needs mosquitto and nats-server.
brokers:
	go test -tags=brokers -count=1 -timeout=15m ./integration/...

lint:
	go tool -modfile=tools/go.mod golangci-lint run ./...

# go test takes one fuzz target at a time.
fuzz:
	@set -e; for pkg in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "== $$pkg $$target"; \
			go test -run='^$$' -fuzz="^$$target$$" -fuzztime=$(FUZZTIME) $$pkg; \
		done; \
	done

bench:
	go test -run='^$$' -bench=. -benchmem ./core/... ./store/... ./gateway/...

check: lint test race
