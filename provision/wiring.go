package provision

import (
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/watch"
)

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
			Keys: e.Admission.Keys, Confidential: cfg.Confidential,
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
		UnheardAfter: cfg.UnheardAfter,
		Limits:       operation.Limits{Deadlines: cfg.Deadlines, InstallsPerHour: cfg.InstallsPerHour}, Claims: e.Claims,
	})
	e.Orders = operation.NewOrders(op, operation.OrdersConfig{
		Ledger: e.Ledger, Configurer: e.Configurer, Power: e.Controllers, Join: cfg.Join, Plan: e.Plan, MayPlace: e.MayPlace,
	})
	e.Agents = operation.NewAgents(op, operation.AgentsConfig{
		Ledger: e.Ledger, Admission: e.Admission, Gate: e.Gate, Recorder: e.recorder,
		Tasks: operation.NewTasks(op, operation.TasksConfig{
			Ledger: e.Ledger, Configurer: e.Configurer, Bootstrapper: e.Bootstrapper, Keys: e.Admission.Keys, Plan: e.Plan,
		}),
		Reports: operation.NewReports(op, operation.ReportsConfig{
			Ledger: e.Ledger, Sessions: e.sessions, Recorder: e.recorder, Gate: e.Gate, AddNIC: e.AddNIC, CheckHints: e.CheckHints,
		}),
	})
	e.Signs = operation.NewSigns(op, operation.SignsConfig{Ledger: e.Ledger, Sessions: e.sessions, Recorder: e.recorder, Plan: e.Plan})
	e.Workers = operation.NewWorkers(op, operation.WorkersConfig{
		Ledger: e.Ledger, Diagnoser: e.Diagnoser, Place: e.Place,
	})
}
