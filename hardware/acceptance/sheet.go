// Package acceptance owns the acceptance sheet of a host: its hardware, its tests and wipes, its faults, and the verdict.
// The sheet is data, and a page to print. It never finds anything out: a sheet is made from what the inventory knows.
package acceptance

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
)

// Input is what a sheet is made from.
type Input struct {
	At         time.Time // when the sheet is made
	Site       string    // name of the appliance's site, "" for none
	Host       inventory.Host
	Inspection *inventory.Inspection // the newest; nil for none
	BMC        *inventory.BMC        // nil for none
	Reports    []inventory.Report    // all of the host, in any order
	Issues     []inventory.Issue     // open ones; those about other hosts are left out
}

// Sheet is the acceptance sheet of one host.
type Sheet struct {
	MadeAt time.Time `json:"madeAt"`
	Site   string    `json:"site,omitempty"`
	// IsAccepted is the verdict, and Reasons are all that stand against it. Notes do not, but a reader should know them.
	IsAccepted bool     `json:"isAccepted"`
	Reasons    []string `json:"reasons,omitempty"`
	Notes      []string `json:"notes,omitempty"`

	Host       Identity            `json:"host"`
	Summary    string              `json:"summary,omitempty"`
	Inspection *Inspected          `json:"inspection,omitempty"`
	Hardware   *inventory.Hardware `json:"hardware,omitempty"`
	BMC        *Controller         `json:"bmc,omitempty"`
	BurnIn     *BurnIn             `json:"burnIn,omitempty"`
	Disks      []Disk              `json:"disks,omitempty"` // those that are in it
	// Departed are disks that have a certificate and are not in the host any more.
	Departed []Disk            `json:"departed,omitempty"`
	Installs []Install         `json:"installs,omitempty"` // the newest first
	Issues   []inventory.Issue `json:"issues,omitempty"`
}

// Identity says which host it is.
type Identity struct {
	ID           inventory.HostID  `json:"id"`
	Name         string            `json:"name"`
	State        inventory.State   `json:"state"`
	StateReason  string            `json:"stateReason,omitempty"`
	Machine      string            `json:"machine,omitempty"`
	Manufacturer string            `json:"manufacturer,omitempty"`
	Product      string            `json:"product,omitempty"`
	Serial       string            `json:"serial,omitempty"`
	AssetTag     string            `json:"assetTag,omitempty"`
	UUID         string            `json:"uuid,omitempty"`
	Place        inventory.Place   `json:"place"`
	MACs         []inventory.MAC   `json:"macs,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
}

// Inspected is the number and time of an inspection, and what it found.
type Inspected struct {
	N       int                        `json:"n"`
	At      time.Time                  `json:"at"`
	Golden  string                     `json:"golden,omitempty"`
	Faults  []string                   `json:"faults,omitempty"`
	Changes []inventory.HardwareChange `json:"changes,omitempty"`
}

// Controller is the BMC, without who may log in to it.
type Controller struct {
	Driver      inventory.BMCDriver  `json:"driver"`
	Address     string               `json:"address,omitempty"`
	Vendor      string               `json:"vendor,omitempty"`
	Model       string               `json:"model,omitempty"`
	Firmware    string               `json:"firmware,omitempty"`
	MAC         inventory.MAC        `json:"mac,omitempty"`
	Power       inventory.PowerState `json:"power,omitempty"`
	IsReachable bool                 `json:"isReachable"`
	Reason      string               `json:"reason,omitempty"`
	CheckedAt   time.Time            `json:"checkedAt,omitzero"`
}

// BurnIn is the newest burn-in.
type BurnIn struct {
	Report     string                 `json:"report"` // its id
	At         time.Time              `json:"at"`
	IsPassed   bool                   `json:"isPassed"`
	ForSeconds int                    `json:"forSeconds"`
	Tests      []inventory.BurnInTest `json:"tests,omitempty"`
}

// Disk is a disk with the newest certificate of its wipe.
type Disk struct {
	Disk inventory.Disk `json:"disk"`
	Wipe *Wipe          `json:"wipe,omitempty"`
}

// Wipe is a certificate and the report that it is in.
type Wipe struct {
	Report string    `json:"report"`
	At     time.Time `json:"at"`
	inventory.WipeCertificate
}

// Install is one installation, as its report says.
type Install struct {
	Report  string          `json:"report"`
	At      time.Time       `json:"at"`
	Machine string          `json:"machine,omitempty"`
	Body    json.RawMessage `json:"body,omitempty"`
}

// Bounds on what one sheet shows; its sources are bounded elsewhere.
const (
	textLimit     = 256
	installsShown = 20
	issuesShown   = 100
	testsShown    = 512
	departedShown = 256
	notesShown    = 300
)

// New makes a sheet.
func New(in Input) Sheet {
	h := &in.Host
	s := Sheet{
		MadeAt: in.At.UTC(), Site: in.Site,
		Host: Identity{
			ID: h.ID, Name: h.Name, State: h.State, StateReason: h.StateReason, Machine: h.Machine, Manufacturer: h.Manufacturer,
			Product: h.Product, Serial: h.Serial, AssetTag: h.AssetTag, UUID: h.UUID, Place: h.Place, MACs: h.MACs(), Labels: h.Labels,
		},
	}
	v := &verdict{}
	v.host(h)
	s.addInspection(in.Inspection, v)
	reports := slices.Clone(in.Reports)
	slices.SortFunc(reports, func(a, b inventory.Report) int { // the newest first
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
	})
	s.addBurnIn(reports, v)
	s.addDisks(reports, in.Host.Machine == "" && !in.Host.IsDirty, v)
	s.addInstalls(reports)
	s.addBMC(in.BMC, v)
	s.addIssues(in.Issues, v)
	s.Reasons, s.Notes = v.reasons, v.notes
	s.IsAccepted = len(s.Reasons) == 0
	return s
}

func (s *Sheet) addInspection(i *inventory.Inspection, v *verdict) {
	if i == nil {
		v.against("it was never inspected")
		return
	}
	hw := i.Hardware
	s.Hardware, s.Summary = &hw, hardware.Summary(&hw)
	s.Inspection = &Inspected{N: i.N, At: i.At.UTC(), Golden: i.Golden, Faults: i.Faults, Changes: i.Changes}
	s.Host.fill(&hw.System)
	v.inspection(i)
}

// fill takes from SMBIOS what the host does not say itself.
func (id *Identity) fill(sys *inventory.System) {
	id.Manufacturer = cmp.Or(id.Manufacturer, sys.Manufacturer)
	id.Product = cmp.Or(id.Product, sys.Product)
	id.Serial = cmp.Or(id.Serial, sys.Serial)
	id.AssetTag = cmp.Or(id.AssetTag, sys.AssetTag)
	id.UUID = cmp.Or(id.UUID, sys.UUID)
}

func (s *Sheet) addBurnIn(reports []inventory.Report, v *verdict) {
	for _, r := range reports {
		if r.Kind != "burn-in" {
			continue
		}
		var body inventory.BurnIn
		if json.Unmarshal(r.Body, &body) != nil {
			v.against("burn-in report %s cannot be read", r.ID)
			return
		}
		s.BurnIn = &BurnIn{Report: r.ID, At: r.CreatedAt.UTC(), ForSeconds: body.ForSeconds, Tests: body.Tests[:min(len(body.Tests), testsShown)]}
		s.BurnIn.IsPassed = v.burnIn(body)
		return
	}
	v.against("there is no burn-in")
}

func (s *Sheet) addInstalls(reports []inventory.Report) {
	for _, r := range reports {
		if r.Kind == "install" && len(s.Installs) < installsShown {
			s.Installs = append(s.Installs, Install{Report: r.ID, At: r.CreatedAt.UTC(), Machine: r.Machine, Body: validJSON(r.Body)})
		}
	}
}

// validJSON drops a body that would make the whole sheet unreadable.
func validJSON(body json.RawMessage) json.RawMessage {
	if !json.Valid(body) {
		return nil
	}
	return body
}

func (s *Sheet) addBMC(b *inventory.BMC, v *verdict) {
	if b == nil {
		v.note("it has no BMC: its power is switched by hand")
		return
	}
	s.BMC = &Controller{
		Driver: b.Driver, Address: b.Address, Vendor: b.Vendor, Model: b.Model, Firmware: b.Firmware, MAC: b.MAC, Power: b.Power,
		IsReachable: b.IsReachable, Reason: b.Reason, CheckedAt: b.CheckedAt,
	}
	if s.Hardware != nil && s.Hardware.BMC != nil {
		s.BMC.Firmware = cmp.Or(s.BMC.Firmware, s.Hardware.BMC.Firmware)
		s.BMC.MAC = cmp.Or(s.BMC.MAC, s.Hardware.BMC.MAC)
	}
	v.bmc(b)
}

func (s *Sheet) addIssues(issues []inventory.Issue, v *verdict) {
	for _, i := range issues {
		if i.ClosedAt.IsZero() && (len(i.HostIDs) == 0 || slices.Contains(i.HostIDs, s.Host.ID)) {
			s.Issues = append(s.Issues, i)
		}
	}
	slices.SortFunc(s.Issues, func(a, b inventory.Issue) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), a.OpenedAt.Compare(b.OpenedAt), cmp.Compare(a.ID, b.ID)) // "error" before "warning"
	})
	for _, i := range s.Issues {
		v.issue(&i, s.Inspection != nil && len(s.Inspection.Faults) > 0)
	}
	s.Issues = s.Issues[:min(len(s.Issues), issuesShown)]
}

// Digest names what a sheet says: SHA-256 of its JSON. Two prints with the same digest say the same.
func (s Sheet) Digest() inventory.Digest {
	text, err := json.Marshal(s)
	if err != nil {
		return "" // New leaves nothing in that cannot be written
	}
	sum := sha256.Sum256(text)
	return inventory.Digest("sha256:" + hex.EncodeToString(sum[:]))
}
