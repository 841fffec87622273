package hosts

import (
	"errors"
	"fmt"
	"io"
	"os"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/boot"
	"slipway.dev/slipway/provision/watch"
	"slipway.dev/slipway/pxe/diagnosis"
	"slipway.dev/slipway/web/client"
)

type hostExplain struct {
	Host string `arg:"" help:"Name, id or MAC; also the MAC of a machine that is not listed."`
	MAC  string `name:"mac" help:"Port to explain (default: the one with the newest packet)." placeholder:"MAC"`
	Wire bool   `help:"Show the packets, too."`
}

// explained is what is known of a host's next boot and of its last.
type explained struct {
	*boot.Explanation
	Diagnosis watch.Diagnosis `json:"diagnosis"`
}

// Run explains a host's next boot, and why the last one failed.
func (c *hostExplain) Run(s *cli.Session, api *client.Client) error {
	var x explained
	mac, isStranger, err := c.find(s, api)
	switch {
	case err != nil:
		return err
	case isStranger:
		x.Diagnosis, err = api.DiagnoseStranger(s.Ctx, mac)
	default:
		var e boot.Explanation
		if e, err = api.Hosts.Explain(s.Ctx, c.Host); err != nil {
			return err
		}
		x.Explanation = &e
		x.Diagnosis, err = api.Hosts.Diagnose(s.Ctx, c.Host, mac)
	}
	return cli.Answered(x, err).Show(s, c.table)
}

// find reads which port is meant, and whether the machine is no host.
func (c *hostExplain) find(s *cli.Session, api *client.Client) (mac inventory.MAC, isStranger bool, err error) {
	if c.MAC != "" {
		mac, err = inventory.ParseMAC(c.MAC)
		return mac, false, err
	}
	return strangerOr(s, api, c.Host)
}

// strangerOr returns the MAC that a name is when no host has it.
func strangerOr(s *cli.Session, api *client.Client, ref string) (inventory.MAC, bool, error) {
	mac, err := inventory.ParseMAC(ref)
	if err != nil {
		return "", false, nil // a name
	}
	_, err = api.Hosts.Get(s.Ctx, ref)
	var e *inventory.Error
	if errors.As(err, &e) && e.Kind == inventory.NotFound {
		return mac, true, nil
	}
	return mac, false, err
}

func (c *hostExplain) table(t *cli.TableWriter, x explained) {
	if e := x.Explanation; e != nil {
		t.Field("host", e.Host)
		t.Field("boots", string(e.Boot))
		t.Field("because", e.Reason)
		t.Field("hint", e.Hint)
		t.Field("profile", e.Profile)
		t.Field("image", e.Image)
		t.Field("loader", e.Loader)
		t.Field("loader trusted", e.Trust)
		t.Field("way to disk", string(e.Disk))
	}
	d := x.Diagnosis
	t.Field("port", string(d.MAC))
	t.Field("last boot came to", d.Step)
	expects := d.Expects
	if expects != "" && d.IsLate {
		expects += ", late since " + d.By.Local().Format("15:04:05")
	}
	t.Field("expected next", expects)
	if x.Explanation != nil {
		t.Field("trouble", d.Trouble)
	}
	for _, cause := range d.Causes {
		t.Field(causeWord(cause), cause.Sentence+" ("+cause.Code+")")
		t.Field("  do", cause.Hint)
		for _, e := range cause.Evidence {
			line := e.Text
			if !e.At.IsZero() {
				line = e.At.Local().Format("15:04:05.000") + " " + line
			}
			t.Field("  seen", line)
		}
	}
	if len(d.Causes) == 0 {
		t.Field("causes", "none: nothing is late, and nothing has failed")
	}
	for _, o := range d.Options {
		note := ""
		if o.Note != "" {
			note = " (" + o.Note + ")"
		}
		t.Field("option "+o.Option, o.Value+" from "+o.From+note)
	}
	if !c.Wire {
		return
	}
	for _, p := range d.Packets {
		way := "from it"
		if p.IsOurs {
			way = "from us"
		}
		t.Field(p.At.Local().Format("15:04:05.000"), way+": "+p.Summary)
	}
}

// causeWord tells the one root cause from guesses, and those from what only makes a boot slow.
func causeWord(c diagnosis.Cause) string {
	if c.Certainty == diagnosis.RootCause {
		return "cause"
	}
	return fmt.Sprintf("%s %d", c.Certainty, c.Rank)
}

type hostPCAP struct {
	Host string `arg:"" help:"Name, id or MAC; also the MAC of a machine that is not listed."`
	File string `arg:"" optional:"" help:"File to write; without it, or with -, to the standard output."`
	MAC  string `name:"mac" help:"Only this port." placeholder:"MAC"`
}

// Run writes a capture file.
func (c *hostPCAP) Run(s *cli.Session, api *client.Client) (err error) {
	var mac inventory.MAC
	if c.MAC != "" {
		if mac, err = inventory.ParseMAC(c.MAC); err != nil {
			return err
		}
	}
	port, isStranger, err := strangerOr(s, api, c.Host)
	if err != nil {
		return err
	}
	out := captureFile{path: c.File, out: s.Out}
	defer func() { err = errors.Join(err, out.close()) }()
	if isStranger {
		err = api.StrangerPackets(s.Ctx, port, &out)
	} else {
		err = api.Hosts.Packets(s.Ctx, c.Host, mac, &out)
	}
	if err == nil && out.size <= captureHead {
		s.Say("no packets of %s are kept: it has sent none", c.Host)
	}
	return err
}

// captureHead is the size of a capture file without packets.
const captureHead = 24

// captureFile makes its file with the first bytes: a request that fails leaves nothing behind, and nothing overwritten.
type captureFile struct {
	path string // "" and "-": to out
	out  io.Writer
	file *os.File
	size int
}

func (f *captureFile) Write(b []byte) (int, error) {
	if f.file == nil && f.path != "" && f.path != "-" {
		file, err := os.OpenFile(f.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return 0, fmt.Errorf("write the capture: %w", err)
		}
		f.file, f.out = file, file
	}
	n, err := f.out.Write(b)
	f.size += n
	return n, err
}

func (f *captureFile) close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
