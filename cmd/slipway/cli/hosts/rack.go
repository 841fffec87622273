package hosts

import (
	"fmt"
	"os"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/elevation"
	"slipway.dev/slipway/web/client"
)

func racks(c *client.Client) client.Noun[client.Rack] { return c.Racks.Noun }

// RackCommand is slipway rack. A rack is named by its name, or by SITE/ROW/NAME.
type RackCommand struct {
	List      rackList      `cmd:"" help:"List racks, those that only hosts name among them."`
	Show      rackShow      `cmd:"" help:"Show a rack and its hosts."`
	Set       rackSet       `cmd:"" help:"Describe a rack; other settings stay."`
	Delete    rackDelete    `cmd:"" help:"Delete the descriptions of racks. Their hosts stay."`
	Elevation rackElevation `cmd:"" help:"Draw a face of a rack as SVG."`
	Cabling   rackCabling   `cmd:"" help:"Show the cables that LLDP has proved, and what is wrong with them."`
}

type rackList struct{}

// Run lists racks.
func (*rackList) Run(s *cli.Session) error {
	return cli.ShowList(s, racks, client.Query{}, 0, []string{"RACK", "SITE", "ROW", "NAME", "UNITS", "HOSTS", "FAULTS", "NOTES"}, func(r client.Rack) []string {
		return []string{r.ID, r.Site, r.Row, r.Name, fmt.Sprint(r.Height), fmt.Sprint(r.HostN), cli.CountText(len(r.Faults)), r.Notes}
	})
}

type rackShow struct {
	Rack string `arg:"" help:"NAME or SITE/ROW/NAME."`
}

// Run shows a rack, the highest place first.
func (c *rackShow) Run(s *cli.Session, api *client.Client) error {
	r, err := api.Racks.Get(s.Ctx, c.Rack)
	if err != nil {
		return err
	}
	all, err := cli.ListAll(s, hosts, client.Query{Rack: r.Name}, 0)
	if err != nil {
		return err
	}
	in := all[:0]
	for _, h := range all {
		if h.Place.RackID() == r.ID {
			in = append(in, h)
		}
	}
	return s.Show(r, func(t *cli.TableWriter) {
		t.Field("rack", r.ID)
		t.Field("units", fmt.Sprintf("%d, unit 1 at the %s", r.Height, r.Numbering))
		t.Field("notes", r.Notes)
		for _, cable := range r.Cables {
			t.Field("cable", fmt.Sprintf("U%d %s to %s port %s", cable.Unit, cable.Port, cable.Switch, cable.To))
		}
		e := elevation.Of(&r.Rack, in, "")
		for i := len(e.Mounted) - 1; i >= 0; i-- {
			m := e.Mounted[i]
			t.Field(unitsOf(m), strings.TrimSpace(fmt.Sprintf("%s  %s  %s", m.Host.Name, m.Host.State, m.Host.Place.Face)))
		}
		for _, h := range e.Loose {
			t.Field("no unit", fmt.Sprintf("%s  %s", h.Name, h.State))
		}
		for _, f := range r.Faults {
			t.Field("fault", f.Detail)
			t.Field("hint", f.Hint)
		}
	})
}

func unitsOf(m elevation.Mounted) string {
	if m.High > m.Low {
		return fmt.Sprintf("U%d-U%d", m.Low, m.High)
	}
	return fmt.Sprintf("U%d", m.Low)
}

type rackSet struct {
	Rack      string               `arg:"" help:"NAME or SITE/ROW/NAME."`
	Height    *int                 `help:"How many units it has (default 42)." placeholder:"N"`
	Numbering *inventory.Numbering `help:"Where unit 1 is: bottom or top (default bottom)." placeholder:"WHERE"`
	Notes     *string              `help:"Anything else." placeholder:"TEXT"`
	Cable     []string             `help:"A cable that should be there, UNIT[:PORT]=SWITCH:PORT; repeat for all of them, an empty one takes all away." placeholder:"CABLE" sep:"none"`
	DryRun    bool                 `help:"Only show what would change."`
}

// Run changes a rack as it is stored now, or makes one.
func (c *rackSet) Run(s *cli.Session, api *client.Client) error {
	r, err := api.Racks.Get(s.Ctx, c.Rack)
	var opts []client.Option
	switch {
	case cli.IsNotFound(err):
		r = client.Rack{}
		if r.Site, r.Row, r.Name, err = inventory.ParseRackID(c.Rack); err != nil {
			return err
		}
	case err != nil:
		return err
	case r.Version > 0:
		opts = append(opts, client.IfVersion(r.Version))
	}
	cli.Set(&r.Height, c.Height)
	cli.Set(&r.Numbering, c.Numbering)
	cli.Set(&r.Notes, c.Notes)
	if c.Cable != nil {
		r.Cables = nil
	}
	for _, text := range c.Cable {
		if text == "" {
			continue
		}
		cable, err := parseCable(text)
		if err != nil {
			return err
		}
		r.Cables = append(r.Cables, cable)
	}
	return cli.Write(s, racks, "PUT", r.Rack.ID(), r, c.DryRun, opts...)
}

// parseCable reads UNIT[:PORT]=SWITCH:PORT. The last colon parts the switch from its port: a chassis id has colons.
func parseCable(text string) (c inventory.Cable, err error) {
	from, to, _ := strings.Cut(text, "=")
	unit, port, _ := strings.Cut(from, ":")
	at := strings.LastIndex(to, ":")
	if _, err := fmt.Sscanf(unit, "%d", &c.Unit); err != nil || at <= 0 || at == len(to)-1 {
		return c, cli.Usage("write it as 7:eno1=leaf-1:Ethernet7, or 7=leaf-1:Ethernet7 for any port", "--cable %q is not a cable", text)
	}
	c.Port, c.Switch, c.To = port, to[:at], to[at+1:]
	return c, nil
}

type rackDelete struct {
	Racks  []string `arg:""`
	DryRun bool     `help:"Only show what would be deleted."`
}

// Run deletes the stored settings of racks.
func (c *rackDelete) Run(s *cli.Session) error { return cli.Remove(s, racks, c.Racks, c.DryRun) }

type rackElevation struct {
	Rack string         `arg:"" help:"NAME or SITE/ROW/NAME."`
	Face inventory.Face `help:"front or rear." enum:"front,rear" default:"front"`
	To   string         `help:"File to write; else it goes to the terminal." placeholder:"FILE"`
}

// Run draws a rack.
func (c *rackElevation) Run(s *cli.Session, api *client.Client) error {
	if c.To == "" {
		return api.Racks.Elevation(s.Ctx, c.Rack, c.Face, s.Out)
	}
	f, err := os.Create(c.To)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := api.Racks.Elevation(s.Ctx, c.Rack, c.Face, f); err != nil {
		return err
	}
	return f.Close()
}

type rackCabling struct {
	Rack string `arg:"" optional:"" help:"NAME or SITE/ROW/NAME; all hosts without it."`
}

// Run shows cables, then what is wrong with them.
func (c *rackCabling) Run(s *cli.Session, api *client.Client) error {
	return cli.Answered(api.Cabling(s.Ctx, c.Rack)).Show(s, func(t *cli.TableWriter, cabling hardware.Cabling) {
		t.Row("HOST", "UNIT", "PORT", "MAC", "SWITCH", "SWITCH PORT", "VLAN", "SEEN")
		for _, l := range cabling.Links {
			t.Row(l.Host, cli.CountText(l.Unit), l.Port, string(l.MAC), l.Switch, l.To, cli.CountText(l.VLAN), cli.TimeText(l.At))
		}
		for _, f := range cabling.Faults {
			t.Text(f.Kind + ": " + f.Detail + "; " + f.Hint)
		}
	})
}
