package provision

import (
	"slipway.dev/slipway/provision/boot"
	"slipway.dev/slipway/provision/claim"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/hosts"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/power"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/provision/strangers"
	"slipway.dev/slipway/provision/watch"
)

// New returns an Engine; Serve must run for its events to reach the store.
func New(cfg Config) *Engine {
	if cfg.Breaker.Boots == 0 {
		cfg.Breaker = boot.DefaultBreaker
	}
	if cfg.InstallsPerHour == 0 {
		cfg.InstallsPerHour = operation.MaxInstalls
	}
	e := &Engine{
		cfg: cfg, Ledger: &ledger.Ledger{}, Boots: boot.New(), Editor: &hosts.Editor{}, Configurer: &configuration.Configurer{},
		Admission: &delivery.Admission{}, Bootstrapper: &delivery.Bootstrapper{},
		Gate: strangers.New(), Controllers: power.New(), Operator: operation.New(), Claims: claim.New(),
		Expectations: &watch.Expectations{}, Diagnoser: &watch.Diagnoser{}, Silences: &watch.Silences{}, Intruders: &watch.Intruders{},
		Watch: &watch.Watch{},
	}
	e.Edits, e.clashes = &configuration.Edits{Configurer: e.Configurer}, &configuration.Clashes{Configurer: e.Configurer}
	e.sessions = session.New(cfg.Now, e.Due)
	e.recorder = recorder.New(cfg.Store, cfg.Log, e.sessions.HostOf)
	e.recorder.May = e.Gate.MayStore
	e.outfit()
	return e
}

// outfit gives each room its part of the configuration.
func (e *Engine) outfit() {
	cfg := &e.cfg
	e.Ledger.Configure(ledger.Config{
		Base: ledger.Base{Store: cfg.Store, Now: cfg.Now, Log: cfg.Log}, Sessions: e.sessions, Recorder: e.recorder,
		KeepHistory: cfg.KeepHistory, Freed: e.freed, Ended: e.LearnLoader,
	})
	e.Gate.Configure(strangers.Config{
		Store: cfg.Store, Now: cfg.Now, Log: cfg.Log, Recorder: e.recorder, Knows: cfg.Knows, Logs: cfg.Logs, KeepStrangers: cfg.KeepStrangers,
	})
	e.Controllers.Configure(power.Config{
		Ledger: e.Ledger, OpenBMC: cfg.OpenBMC, Sealer: cfg.Sealer, Secrets: cfg.Secrets, Pace: cfg.Pace,
		IsBusy: e.Operator.Busy.Has, FoundOff: e.Operator.FoundOff,
	})
	e.Configurer.Configure(configuration.Config{
		Ledger: e.Ledger, Renderer: cfg.Renderer, Secrets: cfg.Secrets, Ours: cfg.Ours,
		Plan: e.Plan, Machine: e.MachineOf,
	})
	wiring{e}.delivery()
	wiring{e}.watch()
	wiring{e}.operation()
	e.Claims.Configure(claim.Config{
		NewULID: cfg.NewULID, Ledger: e.Ledger, Operator: e.Operator, Configurer: e.Configurer,
		Bootstraps: &e.Bootstraps,
	})
	e.Viewer.Configure(claim.ViewConfig{Now: cfg.Now, Sessions: e.sessions, Configurer: e.Configurer, ProviderID: e.ProviderID})
	e.Boots.Configure(boot.Config{
		Frame: boot.Frame{Store: cfg.Store, Now: cfg.Now, Log: cfg.Log, Ledger: e.Ledger, Sessions: e.sessions, Recorder: e.recorder},
		Rooms: boot.Rooms{
			Configurer: e.Configurer, Admission: e.Admission, Bootstrapper: e.Bootstrapper, Deliverer: e.Deliverer, Gate: e.Gate,
			Power: e.Controllers, Operator: e.Operator, Signs: e.Signs,
		},
		Defaults: boot.Defaults{
			Policy: cfg.Policy, Quirks: cfg.Quirks, Loaders: cfg.Loaders, Signatures: cfg.Signatures, BootMenu: cfg.BootMenu,
			Others: cfg.Others,
		},
		Breaker: cfg.Breaker, NewID: cfg.NewID, Vendor: cfg.Vendor, HasPower: cfg.OpenBMC != nil, Neighbour: cfg.Neighbour,
	})
	e.Editor.Configure(hosts.Config{
		Now: cfg.Now, NewID: cfg.NewID, Vendor: cfg.Vendor, Ledger: e.Ledger, Operator: e.Operator,
		JudgePort: e.JudgePort, HoldOn: e.HoldOn, MayPlace: e.MayPlace,
	})
}

// wiring gives the types of a room what each of them needs.
type wiring struct{ *Engine }

func (e wiring) delivery() {
	cfg := &e.cfg
	e.Admission.Configure(delivery.AdmissionConfig{
		Ledger: e.Ledger, Sessions: e.sessions, Recorder: e.recorder, Configurer: e.Configurer, ReportKey: cfg.ReportKey,
		Neighbour: cfg.Neighbour, Plan: e.Plan,
	})
	e.Bootstrapper.Configure(delivery.BootstrapConfig{
		Ledger: e.Ledger, Configurer: e.Configurer, Renderer: cfg.Renderer, Site: cfg.Site, Plan: e.Plan, Given: e.bootstrapGiven,
	})
	e.Deliverer = delivery.New(delivery.Config{
		Ledger: e.Ledger, Sessions: e.sessions, Recorder: e.recorder, Admission: e.Admission, Join: cfg.Join, Confidential: cfg.Confidential,
		Guard: &delivery.Guard{Ledger: e.Ledger, Neighbour: cfg.Neighbour, Confidential: cfg.Confidential},
		Values: &delivery.Values{
			Store: cfg.Store, Configurer: e.Configurer, Renderer: cfg.Renderer, Join: cfg.Join, Bootstrapper: e.Bootstrapper,
			Keys: e.Admission.Keys, Confidential: cfg.Confidential, Others: cfg.Others,
		},
	})
}

func (e wiring) watch() {
	cfg := &e.cfg
	e.Expectations.Configure(watch.ExpectConfig{Now: cfg.Now, Sessions: e.sessions, Deadlines: cfg.Deadlines, Operation: e.Operator.ExpectedOf})
	e.Diagnoser.Configure(watch.DiagnoserConfig{
		Ledger: e.Ledger, Sessions: e.sessions, Expectations: e.Expectations, Plan: e.Plan,
		Wire: cfg.Wire, Ours: cfg.Ours, BootPort: cfg.BootPort,
	})
	e.Silences.Configure(watch.SilencesConfig{
		Ledger: e.Ledger, Sessions: e.sessions, Recorder: e.recorder, Diagnoser: e.Diagnoser, Heard: e.Heard,
		Known: e.Known,
	})
	e.Intruders.Configure(watch.IntrudersConfig{Ledger: e.Ledger, Recorder: e.recorder, Vendor: cfg.Vendor})
	e.Watch.Configure(watch.Config{
		Ledger: e.Ledger, Sessions: e.sessions, Expectations: e.Expectations, Diagnoser: e.Diagnoser, Silences: e.Silences,
	})
}

func (e wiring) operation() {
	cfg, op := &e.cfg, e.Operator
	op.Configure(operation.Config{
		Ledger: e.Ledger, NewULID: cfg.NewULID, Sessions: e.sessions, Power: e.Controllers, Nodes: cfg.Nodes, Bootstraps: &e.Bootstraps,
		Limits: operation.Limits{Deadlines: cfg.Deadlines, InstallsPerHour: cfg.InstallsPerHour, UnheardAfter: cfg.UnheardAfter}, Claims: e.Claims,
	})
	e.Orders = operation.NewOrders(op, operation.OrdersConfig{
		Ledger: e.Ledger, Configurer: e.Configurer, Power: e.Controllers, Join: cfg.Join, Plan: e.Plan, MayPlace: e.MayPlace,
	})
	e.Agents = operation.NewAgents(op, operation.AgentsConfig{
		Ledger: e.Ledger, Admission: e.Admission, Gate: e.Gate, Recorder: e.recorder,
		Tasks: operation.NewTasks(op, operation.TasksConfig{
			Ledger: e.Ledger, Configurer: e.Configurer, Bootstrapper: e.Bootstrapper, Keys: e.Admission.Keys, Plan: e.Plan,
			Others: cfg.Others,
		}),
		Reports: operation.NewReports(op, operation.ReportsConfig{
			Ledger: e.Ledger, Sessions: e.sessions, Recorder: e.recorder, Gate: e.Gate, AddNIC: e.AddNIC, CheckHints: e.CheckHints,
		}),
	})
	e.Signs = operation.NewSigns(op, operation.SignsConfig{Ledger: e.Ledger, Sessions: e.sessions, Recorder: e.recorder, Plan: e.Plan})
	e.Workers = operation.NewWorkers(op, operation.WorkersConfig{
		Ledger: e.Ledger, Diagnoser: e.Diagnoser, Gone: e.cfg.Gone, Place: e.Place,
	})
}
