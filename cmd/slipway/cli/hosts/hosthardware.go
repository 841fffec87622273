package hosts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/hardware/acceptance"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

type hostHardware struct {
	Host string `arg:""`
	Diff bool   `help:"Show what has changed since the inspection before."`
	N    int    `help:"Number of the inspection, from 1; 0 is the newest." placeholder:"N"`
}

// Run shows what a host is made of.
func (c *hostHardware) Run(s *cli.Session, api *client.Client) error {
	i, err := api.Hosts.Hardware(s.Ctx, c.Host, c.N)
	if err != nil {
		return err
	}
	if c.Diff {
		if i.Changes == nil {
			i.Changes = []inventory.HardwareChange{}
		}
		return s.Show(i.Changes, func(t *cli.TableWriter) {
			if len(i.Changes) == 0 {
				t.Text("nothing has changed")
				return
			}
			t.Row("CHANGE", "WHAT", "FROM", "TO")
			for _, x := range i.Changes {
				t.Row(x.Kind, x.What, x.Old, x.New)
			}
		})
	}
	return s.Show(i, func(t *cli.TableWriter) { hardwareTable(t, &i) })
}

// hardwareTable writes an inspection for people.
func hardwareTable(t *cli.TableWriter, i *inventory.Inspection) {
	hw := &i.Hardware
	join := func(parts ...string) string { return strings.Join(strings.Fields(strings.Join(parts, " ")), " ") }
	t.Field("inspection", fmt.Sprintf("%d, %s, by %s", i.N, cli.TimeText(i.At), hw.Source))
	t.Field("in short", hardware.Summary(hw))
	t.Field("machine", join(hw.System.Manufacturer, hw.System.Product, hw.System.Version))
	t.Field("serial", hw.System.Serial)
	t.Field("uuid", hw.System.UUID)
	t.Field("board", join(hw.System.BoardProduct, hw.System.BoardSerial))
	secure := ""
	if hw.Firmware.IsSecureBoot {
		secure = "secure boot"
	}
	t.Field("firmware", join(string(hw.Firmware.Kind), hw.Firmware.Vendor, hw.Firmware.Version, hw.Firmware.ReleasedAt, secure))
	t.Field("cpu", fmt.Sprintf("%d × %s, %d cores, %d threads, %s", hw.CPU.Sockets, hardware.ShortCPU(hw.CPU.Model), hw.CPU.Cores, hw.CPU.Threads, hw.CPU.Arch))
	t.Field("memory", hardware.Bytes(hardware.Memory(nil, hw)))
	for _, d := range hw.DIMMs {
		t.Field("dimm", join(d.Slot, hardware.Bytes(d.SizeBytes), d.Type, d.Manufacturer, d.Part, d.Serial))
	}
	for _, d := range hw.Disks {
		t.Field("disk", join(d.Name, hardware.Bytes(d.SizeBytes), d.Transport, d.Vendor, d.Model)+cli.Prefixed(", serial ", d.Serial)+cli.Prefixed(", wwn ", d.WWN)+
			cli.Prefixed(", firmware ", d.Firmware)+cli.Prefixed(", ", d.Contents)+cli.Prefixed(", health ", d.Health))
	}
	for _, d := range hw.MissingDisks {
		t.Field("missing disk", join(d.Name, hardware.Bytes(d.SizeBytes), d.Model)+cli.Prefixed(", serial ", d.Serial)+cli.Prefixed(", wwn ", d.WWN))
	}
	for _, p := range hw.Ports {
		link := "no link"
		if p.HasLink {
			link = hardware.Speed(p.SpeedMbps)
		}
		text := join(p.Name, string(p.MAC), p.Driver) + ", " + link
		if p.Neighbour != nil {
			text += ", at " + hardware.NeighbourName(p.Neighbour)
		}
		t.Field("port", text)
	}
	for _, a := range hw.Accelerators {
		t.Field("accelerator", join(a.Address, a.ID, a.Vendor, a.Model))
	}
	for _, d := range hw.PCI {
		if d.IsMissingDriver {
			t.Field("no driver for", join(d.Address, d.ID, d.Vendor, d.Model))
		}
	}
	if hw.TPM != nil {
		t.Field("tpm", join(hw.TPM.Version, hw.TPM.Vendor))
	}
	if hw.BMC != nil {
		t.Field("bmc", join(hw.BMC.Address, string(hw.BMC.MAC), hw.BMC.Vendor, hw.BMC.Firmware))
	}
	t.Field("golden", i.Golden)
	for _, f := range i.Faults {
		t.Field("fault", f)
	}
	if n := len(i.Changes); n > 0 {
		t.Field("changes", fmt.Sprintf("%d; --diff shows them", n))
	}
}

type hostReport struct {
	Host string `arg:""`
	HTML string `name:"html" help:"Write it as a page that can be printed; - is standard output." placeholder:"FILE"`
}

// Run shows a host's acceptance sheet.
func (c *hostReport) Run(s *cli.Session, api *client.Client) error {
	if c.HTML == "" {
		raw, err := api.Hosts.Report(s.Ctx, c.Host)
		if err != nil {
			return err
		}
		var sheet acceptance.Sheet
		if err := json.Unmarshal(raw, &sheet); err != nil {
			return fmt.Errorf("read acceptance sheet: %w", err)
		}
		return s.Show(raw, func(t *cli.TableWriter) { sheetTable(t, &sheet) })
	}
	var page bytes.Buffer
	if err := api.Hosts.ReportPage(s.Ctx, c.Host, &page); err != nil {
		return err
	}
	if c.HTML == "-" {
		_, err := page.WriteTo(s.Out)
		return err
	}
	if err := os.WriteFile(c.HTML, page.Bytes(), 0o644); err != nil {
		return &inventory.Error{Kind: inventory.Invalid, Msg: "cannot write the page: " + err.Error()}
	}
	s.Say("written to %s", c.HTML)
	return nil
}

// sheetTable sums up an acceptance sheet; the page has the rest.
func sheetTable(t *cli.TableWriter, a *acceptance.Sheet) {
	t.Field("host", a.Host.Name+", "+string(a.Host.State))
	t.Field("accepted", cli.YesNo(a.IsAccepted))
	for _, r := range a.Reasons {
		t.Field("because", r)
	}
	for _, n := range a.Notes {
		t.Field("note", n)
	}
	t.Field("hardware", a.Summary)
	if i := a.Inspection; i != nil {
		t.Field("inspection", fmt.Sprintf("%d, %s", i.N, cli.TimeText(i.At)))
		for _, f := range i.Faults {
			t.Field("fault", f)
		}
	}
	if b := a.BurnIn; b != nil {
		t.Field("burn-in", fmt.Sprintf("%s, for %s: %s", cli.TimeText(b.At), inventory.Duration(time.Duration(b.ForSeconds)*time.Second), passed(b.IsPassed)))
		for _, x := range b.Tests {
			text := x.Name + ": " + passed(x.Passed) + cli.Prefixed(", ", x.Detail)
			if x.Rate > 0 {
				text += fmt.Sprintf(", %.4g %s", x.Rate, x.Unit)
			}
			t.Field("test", text)
		}
	}
	for _, d := range append(append([]acceptance.Disk{}, a.Disks...), a.Departed...) {
		text := strings.TrimSpace(d.Disk.Name+" "+d.Disk.Serial) + ": no wipe is known"
		if w := d.Wipe; w != nil {
			text = fmt.Sprintf("%s %s: %s by %s, %s", d.Disk.Name, d.Disk.Serial, w.Mode, w.Method, cli.TimeText(w.At)) + cli.Prefixed(", ", w.Error)
		}
		t.Field("disk", text)
	}
	for _, x := range a.Installs {
		t.Field("installed", strings.TrimSpace(cli.TimeText(x.At)+" "+x.Machine))
	}
	for _, x := range a.Issues {
		t.Field("issue", x.Cause)
	}
	t.Field("made", cli.TimeText(a.MadeAt))
}

func passed(is bool) string {
	if is {
		return "passed"
	}
	return "failed"
}
