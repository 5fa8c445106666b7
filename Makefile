SHELL := /bin/bash
.DEFAULT_GOAL := help

GO ?= go
TEST_TIMEOUT ?= 10m
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: help
help: ## show this list
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: build
build: ## build the binary ./ropeline
	CGO_ENABLED=0 $(GO) build -trimpath -o ropeline ./cmd/ropeline

.PHONY: demo
demo: build ## three nodes, a small shop and a crowd; open the printed address in a browser
	./ropeline demo $(DEMO_FLAGS)

.PHONY: test
test: ## all tests, with the race detector and in random order
	$(GO) test -race -shuffle=on -timeout $(TEST_TIMEOUT) ./...

.PHONY: lint
lint: ## formatting, vet, staticcheck, and the directions of imports
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "gofmt would change:"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	$(GO) mod tidy -diff
	$(GO) run $(STATICCHECK) ./...
	$(GO) test -count=1 -run '^TestImports' ./cmd/ropeline
