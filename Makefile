# Everyday commands. The plain ones are go run ./cmd/gateway serve and go test ./...

FUZZTIME ?= 30s

.PHONY: build test race brokers lint fuzz bench gobench speed check

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

# Beside its peers, in less than ten minutes; docs/bench.md tells more. Needs
# mosquitto. BENCHFLAGS=-full takes longer and stores 5,000,000 messages.
bench:
	cd integration/bench && go run . $(BENCHFLAGS)

# The ordinary Go benchmarks alone.
gobench:
	go test -run='^$$' -bench=. -benchmem ./core/... ./store/... ./gateway/...

# Holds the accept path and parsing to their share of the limit.
speed:
	GATEWAY_TEST_SPEED=1 go test -count=1 -p=1 -v -run='HoldsItsShare$$' ./core ./gateway

check: lint test race
