package provision

import (
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/watch"
	"slipway.dev/slipway/pxe"
)

// wiring gives the types of a room what each of them needs.
type wiring struct{ *Engine }

func (e wiring) delivery() {
	cfg := &e.cfg
	e.Admission.Configure(delivery.AdmissionConfig{
		Ledger: e.ledger, Sessions: e.sessions, Recorder: e.recorder, Configurer: e.Configurer, ReportKey: cfg.ReportKey,
		Neighbour: cfg.Neighbour, Plan: e.planFor,
	})
	e.Bootstrapper.Configure(delivery.BootstrapConfig{
		Ledger: e.ledger, Configurer: e.Configurer, Renderer: cfg.Renderer, Site: cfg.Site, Plan: e.planFor, Given: e.bootstrapGiven,
	})
	e.Deliverer = delivery.New(delivery.Config{
		Ledger: e.ledger, Sessions: e.sessions, Recorder: e.recorder, Admission: e.Admission, Join: cfg.Join, Confidential: cfg.Confidential,
		Guard: &delivery.Guard{Ledger: e.ledger, Neighbour: cfg.Neighbour, Confidential: cfg.Confidential},
		Values: &delivery.Values{
			Store: cfg.Store, Configurer: e.Configurer, Renderer: cfg.Renderer, Join: cfg.Join, Bootstrapper: e.Bootstrapper,
			Keys: e.Admission.Keys, Confidential: cfg.Confidential,
		},
	})
}

func (e wiring) watch() {
	cfg := &e.cfg
	e.Expectations.Configure(watch.ExpectConfig{Now: cfg.Now, Sessions: e.sessions, Deadlines: cfg.Deadlines, Operation: e.ExpectedOf})
	e.Diagnoser.Configure(watch.DiagnoserConfig{
		Ledger: e.ledger, Sessions: e.sessions, Expectations: e.Expectations, Plan: e.planFor,
		Wire: cfg.Wire, Ours: cfg.Ours, BootPort: cfg.BootPort,
	})
	e.Silences.Configure(watch.SilencesConfig{
		Ledger: e.ledger, Sessions: e.sessions, Recorder: e.recorder, Diagnoser: e.Diagnoser, Heard: e.heard,
		Known: func(tx inventory.Tx, mac inventory.MAC, subnet string) (*inventory.Host, pxe.Plan, error) {
			k, err := e.known(tx, mac, subnet)
			return k.host, k.plan, err
		},
	})
	e.Intruders.Configure(watch.IntrudersConfig{Ledger: e.ledger, Recorder: e.recorder, Vendor: cfg.Vendor})
	e.Watch.Configure(watch.Config{
		Ledger: e.ledger, Sessions: e.sessions, Expectations: e.Expectations, Diagnoser: e.Diagnoser, Silences: e.Silences,
	})
}

func (e wiring) operation() {
	cfg, op := &e.cfg, e.Operator
	op.Configure(operation.Config{
		Ledger: e.ledger, NewULID: cfg.NewULID, Sessions: e.sessions, Power: e.Controllers, Nodes: cfg.Nodes, Bootstraps: &e.Bootstraps,
		Limits: operation.Limits{Deadlines: cfg.Deadlines, InstallsPerHour: cfg.InstallsPerHour}, Claims: e.Claims,
	})
	e.Orders = operation.NewOrders(op, operation.OrdersConfig{
		Ledger: e.ledger, Configurer: e.Configurer, Power: e.Controllers, Join: cfg.Join, Plan: e.planFor, MayPlace: e.MayPlace,
	})
	e.Agents = operation.NewAgents(op, operation.AgentsConfig{
		Ledger: e.ledger, Admission: e.Admission, Gate: e.Gate, Recorder: e.recorder,
		Tasks: operation.NewTasks(op, operation.TasksConfig{
			Ledger: e.ledger, Configurer: e.Configurer, Bootstrapper: e.Bootstrapper, Keys: e.Admission.Keys, Plan: e.planFor,
		}),
		Reports: operation.NewReports(op, operation.ReportsConfig{
			Ledger: e.ledger, Sessions: e.sessions, Recorder: e.recorder, Gate: e.Gate, AddNIC: e.addNIC, CheckHints: e.checkHints,
		}),
	})
	e.Signs = operation.NewSigns(op, operation.SignsConfig{Ledger: e.ledger, Sessions: e.sessions, Recorder: e.recorder, Plan: e.planFor})
	e.Workers = operation.NewWorkers(op, operation.WorkersConfig{
		Ledger: e.ledger, Power: e.Controllers, Nodes: cfg.Nodes, Diagnoser: e.Diagnoser, UnheardAfter: cfg.UnheardAfter, Place: e.Place,
	})
}
