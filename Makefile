# What there is to do: `make` lists it.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# go.mod names the Go version; an older go command fetches it.
export GOTOOLCHAIN := auto

# Where goroutines share memory, tests run a second time under the race detector.
RACE := . ./schema ./internal/engine/... ./internal/state/... ./internal/epoch/... ./internal/deliver/... ./internal/migrate/... ./internal/plan/... ./internal/tabular/...

# How long one package's tests may take: one that hangs is to say so soon.
TEST_TIMEOUT ?= 5m

# How long `make torture` feeds each decoder, and how long its tests may take.
FUZZTIME ?= 10m
TORTURE_TIMEOUT ?= 6h

.PHONY: help run test check bench torture fuzz

help: ## list what there is to do
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## a week of flights through a job that is killed, upgraded while it runs, and rolled back
	@go run ./examples/flights

test: ## all tests, then those of goroutines under the race detector
	@echo "Testing every package."
	@go test -timeout $(TEST_TIMEOUT) ./...
	@echo "Testing the API, schemas, the engine, states, the epoch log, deliveries, migrations, plans and files of rows under the race detector."
	@go test -race -timeout $(TEST_TIMEOUT) $(RACE)

check: ## format, vet, staticcheck, go.mod, and the repository's own rules
	@echo "Checking the format."
	@unformatted="$$("$$(go env GOROOT)/bin/gofmt" -l .)"; \
	if [[ -n "$$unformatted" ]]; then echo "Not as gofmt has it; \`go fmt ./...\` repairs:"; echo "$$unformatted"; exit 1; fi
	@echo "Checking with go vet."
	@go vet ./...
	@echo "Checking with staticcheck."
	@go tool staticcheck ./...
	@echo "Checking that go.mod is tidy."
	@go mod tidy -diff
	@echo "Checking the repository's own rules."
	@go test ./internal/rules/...

bench: ## measure against hand-written programs; writes docs/measured.md
	@echo "Measuring. Nothing else should run on this machine meanwhile."
	@go run ./bench

torture: ## the long tests, then every fuzzer for FUZZTIME (defaults to 10m)
	@echo "Running all tests at full length."
	@SLUICE_TORTURE=1 go test -count=1 -timeout $(TORTURE_TIMEOUT) ./...
	@$(MAKE) --no-print-directory fuzz

fuzz: ## every fuzzer for FUZZTIME (defaults to 10m)
	@found="$$(grep -rnoE '^func Fuzz\w+' --include='*_test.go' . | sed -E 's|^(.*)/[^/]+:[0-9]+:func (Fuzz\w+)$$|\1 \2|' | sort)"; \
	while read -r folder name; do \
		echo "Feeding $$name of $$folder for $(FUZZTIME)."; \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$folder" </dev/null; \
	done <<<"$$found"
