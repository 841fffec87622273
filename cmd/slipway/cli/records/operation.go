package records

import (
	"fmt"
	"time"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

func operations(c *client.Client) client.Noun[inventory.Operation] { return c.Operations.Noun }

// OperationCommand is slipway operation.
type OperationCommand struct {
	List   operationList   `cmd:"" help:"List what is being done with hosts, and with --all what was, latest first."`
	Show   operationShow   `cmd:"" help:"Show an operation."`
	Wait   operationWait   `cmd:"" help:"Follow an operation until it has ended."`
	Cancel operationCancel `cmd:"" help:"Cancel operations. Slipway quarantines a host that may be half written."`
}

type operationList struct {
	Host    string `help:"Only those with this host." placeholder:"HOST"`
	Machine string `help:"Only those for this machine." placeholder:"MACHINE"`
	Kind    string `help:"Only this kind, such as install." placeholder:"KIND"`
	All     bool   `help:"Those that have ended as well."`
	Limit   int    `default:"50" help:"At most so many; 0 for all."`
}

// Run lists operations. Of one host or machine, those that have ended are listed as well.
func (c *operationList) Run(s *cli.Session, _ *client.Client) error {
	q := client.Query{Host: c.Host, Machine: c.Machine, Kind: c.Kind, Open: !c.All && c.Host == "" && c.Machine == ""}
	names, headings := s.HostNames(), []string{"ID", "KIND", "HOST", "MACHINE", "STEP", "STATE", "STARTED", "TOOK", "PROGRESS", "REASON"}
	return cli.ShowList(s, operations, q, c.Limit, headings, func(o inventory.Operation) []string {
		return []string{
			o.ID, string(o.Kind), names(o.HostID), o.Machine, string(o.Step), string(o.State), cli.TimeText(o.StartedAt),
			lasted(&o, time.Now()), shortProgress(&o), o.Reason,
		}
	})
}

// lasted says how long an operation took, or has been going on.
func lasted(o *inventory.Operation, now time.Time) string {
	if !o.EndedAt.IsZero() {
		now = o.EndedAt
	}
	return inventory.Duration(max(0, now.Sub(o.StartedAt)).Round(time.Second)).String()
}

// shortProgress is how far the step is, for a column.
func shortProgress(o *inventory.Operation) string {
	if !o.IsOpen() || o.Progress.Total <= 0 {
		return ""
	}
	return fmt.Sprintf("%d %%", min(100, int(100*float64(o.Progress.Bytes)/float64(o.Progress.Total))))
}

type operationShow struct {
	Operation string `arg:"" help:"Its id."`
}

// Run shows an operation.
func (c *operationShow) Run(s *cli.Session) error {
	return cli.ShowOne(s, operations, c.Operation, func(t *cli.TableWriter, o inventory.Operation) {
		t.Field("operation", o.ID)
		t.Field("kind", string(o.Kind))
		t.Field("host", s.HostNames()(o.HostID))
		t.Field("machine", o.Machine)
		t.Field("pool", o.Pool)
		t.Field("step", string(o.Step))
		t.Field("state", string(o.State))
		t.Field("because", o.Reason)
		t.Field("hint", o.Hint)
		if o.AttemptN > 1 {
			t.Field("attempt", fmt.Sprint(o.AttemptN))
		}
		t.Field("progress", cli.ProgressText(&o))
		t.Field("asked for by", o.By)
		t.Field("started", cli.TimeText(o.StartedAt))
		t.Field("step since", cli.TimeText(o.StepAt))
		if o.IsOpen() {
			t.Field("late after", cli.TimeText(o.DeadlineAt))
		}
		t.Field("ended", cli.TimeText(o.EndedAt))
		t.Field("took", lasted(&o, time.Now()))
	})
}

type operationWait struct {
	Operation string        `arg:"" help:"Its id."`
	For       time.Duration `help:"No longer than this." placeholder:"DURATION"`
}

// Run follows an operation; one that ends badly is a failure.
func (c *operationWait) Run(s *cli.Session) error {
	f, err := s.Follow(nil)
	if err != nil {
		return err
	}
	o, err := f.API.Operations.Get(s.Ctx, c.Operation)
	if err != nil {
		return err
	}
	wait := cli.WaitForEver
	if c.For > 0 {
		wait = cli.WaitFlag(c.For)
	}
	if o, err = s.WaitOperation(f, o, wait); err != nil {
		return err
	}
	return s.Stored(o, nil)
}

type operationCancel struct {
	Operations []string `arg:"" help:"Their ids."`
}

// Run ends operations.
func (c *operationCancel) Run(s *cli.Session) error {
	return s.Each(c.Operations, func(api *client.Client, id string) error {
		return cli.Answered(api.Operations.Cancel(s.Ctx, id)).Show(s, func(t *cli.TableWriter, o inventory.Operation) { t.Row(o.ID, string(o.Kind), string(o.State)) })
	})
}
