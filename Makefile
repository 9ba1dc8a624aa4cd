# Everything a developer runs. `make` alone lists it.

with_servers := scripts/with-servers --
# Tests end processes, not machines: their servers need not wait for the disk.
test_servers := scripts/with-servers --no-sync --
with_languages := scripts/with-languages
bench_servers := scripts/with-servers postgres mariadb mysql redis redis_default --
net_servers := scripts/with-servers postgres mariadb mysql redis --
attack_servers := scripts/with-servers postgres pgbouncer mariadb mysql etcd --
# For how long make attack attacks each of ON, and by which plan: 0 draws one.
FOR          ?= 60s
# For how long make normal-hour has hours follow one another.
HOUR         ?= 10m
SEED         ?= 0
ON           ?= sqlite postgres pgbouncer mariadb mysql postgres+etcd
# gofumpt and staticcheck in the versions tools/go.mod names: they stay out of the library's own
# go.mod. Without GOWORK=off go refuses -modfile.
tool         := tool -modfile=$(CURDIR)/tools/go.mod
# ./... does not enter another module, so each is named. tools only holds versions: it has no Go
# files.
modules      := $(filter-out ./tools/,$(dir $(wildcard ./go.mod ./*/go.mod ./*/*/go.mod)))
packages     := $(addsuffix ...,$(modules))
# The benchmarks are not what the tests must cover.
covered      := $(filter-out ./bench/...,$(packages))
# The race detector leaves out what takes most of its time and shows it nothing. SQLite is C
# translated to Go, whose memory the detector does not look at; its driver is watched like any code.
# Regular expressions read strings, which do not change; each store that is opened cuts its SQL with
# them.
unwatched    := modernc.org/sqlite/lib modernc.org/libc modernc.org/memory regexp regexp/syntax
# client-go needs the types of all of Kubernetes, which the detector's compiler takes four minutes of
# a processor for, and the other two. The adapter starts no goroutine; make conformance watches it.
unraced      := ./adapters/client-go/...
race         := -race $(patsubst %,-gcflags=%=-race=false,$(unwatched))
# Watched programs would sleep for a second before they end, a test's child processes too, lest a
# goroutine that outlives the tests still be in a race. goleak finds such a goroutine.
export GORACE ?= atexit_sleep_ms=10
# A test's heap is small: to collect it a quarter as often takes 7 % off the processor's time.
test: export GOGC ?= 400
# Tests on servers wait for most of their time, so that two cores run more than two of them.
at_once      := -p 3 -parallel 4
# The last packages of the last modules take minutes, and begin first: nothing runs beside what is last.
first        := ./cmd/rowlock ./paxosbridge/etcd
comma        := ,
space        := $(subst ,, )

.PHONY: help test test-quick times pkg pkg-stop model conformance matrix soak normal-hour attack attack-mutants chaos chaos-short chaos-failovers chaos-controls fuzz mutants mutants-short lint budgets fmt cover bench bench-short bench-floor bench-wait bench-hot bench-slots bench-fenced bench-net bench-ways bench-shared bench-trace bench-bridge bench-growth servers release-check dist

help: ## list what there is
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

# go vet is part of make lint: the tests' own would look at every dependency a second time. Without
# Prometheus, as on a machine that is not Debian, the tests that run it say that they are skipped.
test: ## every test, on real servers started for it, with the race detector; what it is too slow for, without
	@began=$$(git rev-parse HEAD) && dirty=$$(git status --porcelain) && \
	ROWLOCK_TEST_PROMETHEUS=$$(scripts/prometheus || true) \
	$(test_servers) $(with_languages) sh -c '\
		scripts/explore -p 3 -parallel 8 -shuffle=on && \
		go test $(at_once) -vet=off -shuffle=on $(unraced) && \
		exec go test $(race) $(at_once) -vet=off -shuffle=on -timeout 60m $(first) $(filter-out $(unraced),$(packages))' && \
	scripts/stamp-tested "$${dirty:+changed on top of }$$began"

test-quick: ## the tests that need nothing but Go
	go test $(packages)

times: ## what the tests of each package take of a processor, the slowest first, and whether one takes over 90 s: P=./internal/...
	$(test_servers) $(with_languages) scripts/times $(race) $(at_once) -timeout 60m $(or $(P),$(packages))

pkg: ## the tests of one package, on servers that go on running for the next call: P=./internal/table ARGS='-race -run Batch'
	@scripts/pkg $(or $(P),$(error the package is missing: make pkg P=./internal/table)) $(ARGS)

pkg-stop: ## stop them; they end by themselves when no call has used them for half an hour
	@scripts/pkg stop

model: ## explorations in their whole breadth, among them all states of the bridge's protocol, without the race detector; without servers
	env -u ROWLOCK_TEST_REQUIRE ROWLOCK_TEST_WHOLE=1 scripts/explore

conformance: ## every test with all that make test draws from or leaves out because it repeats another run: faults, settings, modes of waiting, databases; and ten times the random sequences
	$(test_servers) $(with_languages) env ROWLOCK_TEST_WHOLE=1 go test $(race) $(at_once) -vet=off -timeout 3h $(packages)
	$(test_servers) env ROWLOCK_TEST_WHOLE=1 go test -timeout 3h ./internal/servertest/settings
	$(test_servers) env ROWLOCK_TEST_WHOLE=1 go test -timeout 3h -run '^(TestConformanceOfCoreAlone|TestAReplyLost|TestCutAnywhere|TestDownCut|TestUninstallCut)' ./internal/table/... ./schema
	$(test_servers) go test $(race) -timeout 3h -run '^TestRandomCalls' ./internal/table/conformance ./optimistic ./forupdate ./quorum -rapid.checks=1000

matrix: ## conformance, fences, upgrade and doctor on PostgreSQL 13 to 18, MariaDB 10.11 to 11.8 and more; writes the table of docs/compatibility.md; ONLY='MariaDB|PostgreSQL 13' runs fewer
	go run ./internal/house/matrix -only '$(ONLY)'

soak: ## waiters of many processes on one key, fences back to back, for ten minutes on each database and in each mode; a thousand rounds of kill -9 through each adapter; a migration beside a reader of 30 s; more of the bridge's states
	$(test_servers) env ROWLOCK_TEST_WHOLE=1 ROWLOCK_SOAK_MS=600000 go test $(race) -timeout 3h -v -run '^TestWaitersOfManyProcesses' ./internal/servertest/wait
	$(test_servers) env ROWLOCK_SOAK_MS=600000 go test -timeout 3h -v -p 1 -parallel 8 -run "^(TestFencedTransactionsBackToBack|TestNoCallOutlastsItsBound)" ./internal/servertest/fence ./internal/servertest/fault
	$(test_servers) env ROWLOCK_ADAPTER_ROUNDS=1000 go test -timeout 3h -v -run '^TestProcessesThatAreKilled' $(filter ./adapters/%,$(packages))
	$(test_servers) $(with_languages) env ROWLOCK_ADAPTER_ROUNDS=1000 ROWLOCK_TEST_WHOLE=1 go test -timeout 3h -v -run '^(TestProcessesThatAreKilled|TestALockThatAKilled)' ./shedlock ./transition
	$(test_servers) env ROWLOCK_TEST_WHOLE=1 ROWLOCK_TEST_MIGRATIONS=20 go test $(race) -timeout 3h -v -run '^(TestALongReader|TestManyProcessesMigrate)' ./schema
	$(test_servers) env ROWLOCK_TEST_WHOLE=1 ROWLOCK_SOAK_MOVES=2000 go test $(race) -timeout 6h -v -run '^TestKeysMove' ./paxosbridge/... ./paxosbridge/etcd/...
	go test -timeout 3h -v -run '^TestRandomSchedules' ./paxosbridge -schedules 5000000
	env ROWLOCK_SOAK_STATES=100000000 go test -timeout 3h -v ./paxosbridge/internal/model

normal-hour: ## hours of three replicas on PostgreSQL for HOUR=10m, with elections, ticks, a deploy, a restart: no alert fires
	ROWLOCK_TEST_PROMETHEUS=$$(scripts/prometheus) scripts/with-servers --no-sync postgres -- \
		env ROWLOCK_NORMAL_HOUR=$(HOUR) go test -count=1 -timeout 3h -v -run '^TestANormalHour' ./internal/scrape

attack: ## processes fight over few keys on slowed servers, and what each was told is checked: FOR=60s on each, SEED=…, ON=…
	@set -e; build=$$(mktemp -d); trap 'rm -rf "$$build"' EXIT; \
	go -C internal/attack build -o $$build/attack .; \
	$(attack_servers) sh -c 'failed=; for on in $(ON); do \
		bridge=; case $$on in *+etcd) bridge=-bridge;; esac; \
		'$$build'/attack -db $${on%+etcd} $$bridge -for $(FOR) -seed $(SEED) || failed="$$failed $$on"; \
	done; test -z "$$failed" || { echo "attack: failed on$$failed" >&2; exit 1; }'

attack-mutants: ## the same on rowlock with one guard removed at a time: each must be found
	$(attack_servers) go run ./internal/attack/mutants

# What make chaos starts is what with-servers installs. The clocks need some packages more, and chaos
# says aloud what it cannot do.
chaos_on     := $(filter postgres mariadb mysql,$(ON))
chaos_needs  := scripts/apt-install libfaketime pgbouncer iproute2 gcc libc6-dev || true
FAULTS       ?= all
# A bridge needs a cluster, which is started where its fault is asked for.
chaos_bridge := $(strip $(if $(filter all bridge-etcd,$(FAULTS)),etcd) $(if $(filter all bridge-group,$(FAULTS)),group))
chaos_clusters := $(if $(chaos_bridge),scripts/with-servers $(chaos_bridge) --)
# How long each of its rounds is, and where it writes its report: nowhere if REPORT is empty.
ROUND        ?= 10s
# How many failovers each fault of them has at least, and how many make chaos-failovers.
TIMES        ?= 1
FAILOVERS    ?= 25
REPORT       ?= docs/reliability.md

chaos: ## the attack while servers, networks, clocks and processes break: FOR=60s on each, SEED=…, ON=…, FAULTS=…; writes docs/reliability.md and its data, or REPORT=…
	@$(chaos_needs); scripts/with-servers $(chaos_on) -- true
	@set -e; build=$$(mktemp -d); trap 'rm -rf "$$build"' EXIT; \
	go -C internal/attack build -o $$build/chaos ./chaos; \
	$(chaos_clusters) $$build/chaos -on "$(chaos_on)" -for $(FOR) -round $(ROUND) -seed $(SEED) -times $(TIMES) -faults "$(FAULTS)" -report "$(REPORT)"

chaos-short: ## ten of the faults, once each on PostgreSQL, in three minutes
	@$(chaos_needs); scripts/with-servers postgres -- true
	@set -e; build=$$(mktemp -d); trap 'rm -rf "$$build"' EXIT; \
	go -C internal/attack build -o $$build/chaos ./chaos; \
	$$build/chaos -on postgres -for 1s -round 8s -seed $(SEED) \
		-faults kill-worker,stop-worker,kill-server,one-way,reply,late,terminate,clock-step,failover-sync,mixed

chaos-failovers: ## 50 failovers of PostgreSQL, half of them lossy, and 10 lossy ones of MariaDB: no token may repeat; FAILOVERS=10 has fewer
	@scripts/with-servers postgres mariadb -- true
	@set -e; build=$$(mktemp -d); trap 'rm -rf "$$build"' EXIT; \
	go -C internal/attack build -o $$build/chaos ./chaos; \
	$$build/chaos -on postgres -for 1s -round 30s -seed $(SEED) -times $(FAILOVERS) -faults failover-sync,failover-lossy; \
	$$build/chaos -on mariadb -for 1s -round 30s -seed $(SEED) -times $$(($(FAILOVERS) * 2 / 5)) -faults failover-lossy

chaos-controls: ## rowlock, or its server, with one guard removed at a time: the fault that needs it must find each
	@scripts/with-servers postgres -- go run ./internal/attack/mutants -chaos

fuzz: ## every fuzz target, each for FOR=60s, one after the other
	@scripts/fuzz $(FOR)

mutants: ## every guard of the SQL broken once, on each database: the tests must notice each. It takes hours; DB=sqlite MATCH=fence try fewer
	scripts/with-servers --no-sync postgres mariadb mysql -- go run ./internal/mutants -db '$(DB)' -match '$(MATCH)'

mutants-short: ## in a minute: that make mutants finds the guards, that three mutants are noticed, and that a harmless change is not
	go run ./internal/mutants -short

lint: ## formatting, go vet, staticcheck, rowlockvet
	@unformatted=$$(GOWORK=off go $(tool) gofumpt -l .) && test -z "$$unformatted" || \
		{ echo "not formatted (make fmt):"; echo "$$unformatted"; exit 1; }
	@# Without go.work, as the modules' users build them: a requirement that go.mod lacks is an error here.
	@failed=; for module in $(modules); do \
		echo "vet and staticcheck $$module"; \
		GOWORK=off go -C $$module vet ./... || failed="$$failed $$module"; \
		GOWORK=off go -C $$module $(tool) staticcheck ./... || failed="$$failed $$module"; \
	done; test -z "$$failed" || { echo "lint: failed in$$failed" >&2; exit 1; }
	@echo "rowlockvet"; built=$$(mktemp -d); trap 'rm -rf "$$built"' EXIT; \
	go -C cmd/rowlockvet build -buildvcs=false -o $$built/rowlockvet . && go vet -vettool=$$built/rowlockvet $(packages)

budgets: ## what the house may cost: figures beside their budgets; ARGS=-why lists what contributes, ARGS=-write lowers the budgets to today's figures
	@scripts/with-servers --no-sync postgres -- go run ./internal/house/budgets $(ARGS)

fmt: ## format all Go files
	GOWORK=off go $(tool) gofumpt -w .

cover: ## statement coverage on real servers, by function, in coverage.out
	$(test_servers) go test -coverpkg=$(subst $(space),$(comma),$(covered)) -coverprofile=coverage.out -timeout 20m $(covered)
	go tool cover -func=coverage.out | tail -n 1

bench: ## fenced sections first, then rowlock against raw statements, the servers' own locks, Redis and etcd, in 20 minutes; writes docs/bench
	$(bench_servers) go -C bench run ./against -out $(CURDIR)/docs/bench

bench-short: ## the same in a minute, with servers that need not wait for the disk: whether a contender fails, a lock is lost, a pair sends or allocates too much
	$(subst with-servers,with-servers --no-sync,$(bench_servers)) sh -c '\
		go -C bench run ./against -short && go -C bench run ./growth -short && exec go -C bench run ./net -short'

bench-floor: ## the shortest times the servers allow, to compare ours with
	$(with_servers) go -C bench run ./floor

bench-wait: ## what waiting costs a server, and how soon the next one has the key
	$(with_servers) go -C bench run ./wait

bench-hot: ## one key that many processes want, beside polling by hand
	$(with_servers) go -C bench run ./hot

bench-slots: ## a semaphore of 8 slots under 64 goroutines, beside 8 keys
	$(with_servers) go -C bench run ./slots

bench-fenced: ## sections under a fenced lock beside SELECT FOR UPDATE, with their round trips; ARGS='-goroutines 64 -keys 64' is more callers
	$(with_servers) go -C bench run ./fenced $(ARGS)

bench-net: ## what locks cost where the server is 0.5 and 2 ms away, each way, beside what does the same without rowlock; writes docs/bench/costs.md
	$(net_servers) go -C bench run ./net -out $(CURDIR)/docs/bench

bench-ways: ## held transactions, compare-and-swap and once, beside the statements that each cannot do without
	$(with_servers) go -C bench run ./ways

bench-shared: ## readers of one key, beside exclusive locks
	$(with_servers) go -C bench run ./shared

bench-trace: ## clients with a trace and with metrics, beside one without, as ratios of one run
	$(with_servers) go -C bench run ./trace

bench-bridge: ## what a bridge costs keys that never move, and one hot key in the table and in etcd
	$(with_servers) go -C bench run ./bridge

bench-growth: ## tables to ten million keys, 1 to 64 processes, a million held locks, in half an hour; writes docs/bench/growth.md; ARGS='-only held' runs one scene again
	scripts/with-servers postgres mariadb mysql -- go -C bench run ./growth -out $(CURDIR)/docs/bench $(ARGS)

release-check: ## what a release of VERSION=v0.9.0 publishes, made in a copy of the last commit and tried as a stranger would, with an empty module cache; ONLY=first is the time to a first write
	scripts/with-servers --no-sync postgres -- go run ./internal/house/release $(if $(ONLY),-only $(ONLY)) $(or $(VERSION),$(error say VERSION=v0.9.0))

dist: ## rowlock for linux, darwin and windows with checksums, of the last commit as VERSION=v0.9.0, in DIST=dist
	go run ./internal/house/release -dist $(or $(DIST),dist) $(or $(VERSION),$(error say VERSION=v0.9.0))

servers: ## a shell with the servers beside it
	$(with_servers) sh -c 'env | grep ^ROWLOCK_TEST_ | sort; exec "$${SHELL:-sh}" -i'
