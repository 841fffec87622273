package power

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/history"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// BMCInventory is what a controller tells of the machine without booting it.
type BMCInventory struct {
	Hardware inventory.Hardware `json:"hardware"`
	Vendor   string             `json:"vendor,omitempty" doc:"Of the controller"`
	Model    string             `json:"model,omitempty" doc:"Of the controller"`
	Firmware string             `json:"firmware,omitempty" doc:"Of the controller"`
	LeftOut  []string           `json:"leftOut,omitempty" doc:"What could not be read, and why"`
}

type (
	logInput struct {
		rest.HostRef
		Limit int `query:"limit" doc:"Most entries, newest first" default:"100" minimum:"1" maximum:"1000"`
	}
	mediaInput struct {
		rest.HostRef
		Body wire.BMCMedia
	}
	bootInput struct {
		rest.HostRef
		Body wire.BMCBoot
	}
	userInput struct {
		rest.HostRef
		Body struct {
			User     string `json:"user" doc:"Name of the account" minLength:"1" maxLength:"64"`
			Password string `json:"password,omitempty" doc:"Of an administrator: a new account, or a new password of one that is there" writeOnly:"true" maxLength:"256"`
			Remove   bool   `json:"remove,omitempty" doc:"Delete the account"`
		}
	}
)

// ControllerFor is how long a request waits for a controller; some take a minute to add up their sensors.
const ControllerFor = 90 * time.Second

// addBMCVerbs registers the questions and orders to controllers.
func (s *Server) addBMCVerbs() {
	addBMCVerb(s, http.MethodPost, "/check", "check-bmc", "Look whether a host's controller does what we need", s.checkBMC)
	addBMCVerb(s, http.MethodPost, "/test", "test-bmc", "Connect to a controller before it is saved, and say at which step that fails: name, connect, tls, login or rights", s.testBMC)
	addBMCVerb(s, http.MethodGet, "/sensors", "get-bmc-sensors", "Read the sensors of a host's controller", s.bmcSensors)
	addBMCVerb(s, http.MethodGet, "/log", "get-bmc-log", "Read the event log of a host's controller, newest first", s.bmcLog)
	addBMCVerb(s, http.MethodDelete, "/log", "clear-bmc-log", "Clear the event log of a host's controller", s.clearBMCLog)
	addBMCVerb(s, http.MethodGet, "/inventory", "get-bmc-inventory", "Show what a host's controller tells of the machine", s.bmcInventory)
	addBMCVerb(s, http.MethodGet, "/users", "list-bmc-users", "List the accounts of a host's controller", s.bmcUsers)
	addBMCVerb(s, http.MethodPost, "/user", "set-bmc-user", "Add, change or delete an account of a host's controller", s.setBMCUser)
	addBMCVerb(s, http.MethodGet, "/media", "get-bmc-media", "Show what is in the virtual drive of a host", s.bmcMedia)
	addBMCVerb(s, http.MethodPost, "/media", "set-bmc-media", "Put an image into the virtual drive of a host, or eject it", s.setBMCMedia)
	addBMCVerb(s, http.MethodGet, "/boot", "get-bmc-boot", "Show the override of a host's boot order", s.bmcBoot)
	addBMCVerb(s, http.MethodPost, "/boot", "set-bmc-boot", "Override a host's boot order", s.setBMCBoot)
	addBMCVerb(s, http.MethodPost, "/reset", "reset-bmc", "Restart a host's controller itself; the machine goes on as it is", s.resetBMC)
	addBMCVerb(s, http.MethodPost, "/rotate", "rotate-bmc", "Give the account of a host's controller a new random password", s.rotateBMC)
}

// addBMCVerb registers an operation on a host's controller.
func addBMCVerb[I, O any](s *Server, method, path, id, summary string, handler func(*rest.Request, *I) (*O, error)) {
	o := rest.Operation{
		Method: method, Path: "/hosts/{host}/bmc" + path, ID: id, Tag: "bmcs", Scope: rest.OfPools, Summary: summary, Within: ControllerFor,
		Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden},
	}
	switch id {
	case "list-bmc-users":
		o.Needs = inventory.Operator
	case "set-bmc-user", "rotate-bmc", "reset-bmc", "test-bmc":
		o.Needs = inventory.Admin
	}
	switch {
	case method == http.MethodDelete, id == "reset-bmc":
		o.Status = http.StatusNoContent
	case id == "rotate-bmc":
		o.Status = http.StatusAccepted
	}
	rest.Register(s.rest, o, handler)
}

// withBMC runs fn with the driver of a host's controller, as what it can do besides switching power.
func withBMC[D any](req *rest.Request, s *Server, ref, what string, fn func(h inventory.Host, d D, b inventory.BMC) error) error {
	h, err := s.rest.ReadHost(req, ref)
	if err != nil {
		return err
	}
	return OnBMC(req, s, h, what, fn)
}

// OnBMC is the same for a host that was read already.
func OnBMC[D any](ctx context.Context, s *Server, h inventory.Host, what string, fn func(h inventory.Host, d D, b inventory.BMC) error) error {
	err := s.cfg.Engine.WithBMC(ctx, h.ID, func(d bmc.Driver, b inventory.BMC) error {
		able, ok := d.(D)
		if !ok {
			return inventory.Errorf(inventory.Invalid, "the controller of host %s (%s) %s", h.Name, b.Driver, what).
				WithHint("slipway bmc check %s lists what it can do", h.Name)
		}
		return fn(h, able, b)
	})
	if said, ok := errors.AsType[*inventory.Error](err); ok && said.Kind == inventory.Unauthorized {
		// It is the controller that knows us not: the client's own token is good.
		return &inventory.Error{Kind: inventory.Conflict, Msg: said.Msg, Hint: said.Hint, Refs: said.Refs, Err: said.Err}
	}
	return err
}

// Note adds to a host's timeline what an admin told its controller.
func (s *Server) Note(req *rest.Request, h inventory.Host, detail string) error {
	return s.rest.Store.Write(req.Detached(), func(tx inventory.Tx) error {
		return tx.AddEvent(&inventory.Event{At: s.rest.Now(), Kind: inventory.EventBMC, HostID: h.ID, Detail: inventory.Clean(detail, 500) + " by " + req.By()})
	})
}

// tell has act tell a controller something, and notes in words what it was told.
func (s *Server) tell(req *rest.Request, h inventory.Host, did string, act func() error) error {
	if err := s.rest.Begun(req); err != nil {
		return err
	}
	if err := act(); err != nil {
		return err
	}
	return s.Note(req, h, did)
}

func (s *Server) checkBMC(req *rest.Request, in *rest.HostRef) (*rest.One[wire.BMCCheck], error) {
	c := wire.BMCCheck{Power: inventory.PowerUnknown, Capabilities: []string{}}
	var (
		problem error    // why its power cannot be read
		asked   []string // what it says that it can do
	)
	add := func(name, good string, err error) {
		r := wire.TargetCheckResult{Name: name, IsGood: err == nil, Detail: good}
		if said, ok := errors.AsType[*inventory.Error](err); ok {
			r.Detail, r.Hint = said.Msg, said.Hint
			req.Named.Add(said.Refs...)
		} else if err != nil {
			r.Detail = "it took too long"
		}
		c.Results = append(c.Results, r)
	}
	h, _, err := s.readBMC(req, in.Host)
	if err != nil {
		return nil, err
	}
	c.Host = h.Name
	err = s.cfg.Engine.WithBMC(req, h.ID, func(d bmc.Driver, _ inventory.BMC) error {
		c.Capabilities = bmc.Capabilities(d)
		is, err := d.Power(req)
		if problem = err; err == nil {
			c.Power = is
			can, err := bmc.Can(req, d)
			if err == nil {
				c.Capabilities, asked = can, can
			} else {
				add("can", "", err)
			}
		}
		add("power", "power is "+string(is), err)
		if users, ok := d.(bmc.UserManager); ok && err == nil {
			add("account", "lets in an administrator", users.CheckCredentials(req))
		}
		return nil
	})
	if err != nil {
		problem = err
		add("driver", "", err)
	}
	c.IsGood = true
	for _, r := range c.Results {
		c.IsGood = c.IsGood && r.IsGood
	}
	if !errors.Is(req.Err(), context.Canceled) { // else it says nothing of the controller
		s.cfg.Engine.NoteCheck(req.Detached(), h, c.Power, problem, asked, summary(c, req.By()))
	}
	return &rest.One[wire.BMCCheck]{Body: c}, nil
}

// summary is what is kept of a check: what is wrong, or else all that is good.
func summary(c wire.BMCCheck, by string) inventory.LastCheck {
	var words []string
	for _, r := range c.Results {
		if r.IsGood == c.IsGood {
			words = append(words, r.Detail)
		}
	}
	return inventory.LastCheck{By: by, IsGood: c.IsGood, Detail: inventory.Clean(strings.Join(words, "; "), 500)}
}

func (s *Server) bmcSensors(req *rest.Request, in *rest.HostRef) (*rest.One[wire.BMCSensors], error) {
	out := wire.BMCSensors{Items: []bmc.Sensor{}}
	err := withBMC(req, s, in.Host, "has no sensors", func(_ inventory.Host, d bmc.SensorReader, _ inventory.BMC) error {
		noted, omitted := bmc.NoteOmissions(req)
		all, err := d.Sensors(noted)
		if err != nil {
			return err
		}
		out.Items, out.LeftOut = append(out.Items, all...), omitted.Texts()
		out.Health, err = d.Health(req)
		return err
	})
	return &rest.One[wire.BMCSensors]{Body: out}, err
}

func (s *Server) bmcLog(req *rest.Request, in *logInput) (*rest.One[wire.BMCLog], error) {
	out := wire.BMCLog{Items: []bmc.LogEntry{}}
	err := withBMC(req, s, in.Host, "keeps no event log", func(_ inventory.Host, d bmc.LogReader, _ inventory.BMC) error {
		noted, omitted := bmc.NoteOmissions(req)
		all, err := d.Log(noted, in.Limit)
		out.Items, out.LeftOut = append(out.Items, all...), omitted.Texts()
		return err
	})
	return &rest.One[wire.BMCLog]{Body: out}, err
}

func (s *Server) clearBMCLog(req *rest.Request, in *rest.HostRef) (*struct{}, error) {
	return nil, withBMC(req, s, in.Host, "keeps no event log", func(h inventory.Host, d bmc.LogReader, _ inventory.BMC) error {
		return s.tell(req, h, "event log of the controller cleared", func() error { return d.ClearLog(req) })
	})
}

func (s *Server) bmcInventory(req *rest.Request, in *rest.HostRef) (*rest.One[BMCInventory], error) {
	var out BMCInventory
	err := withBMC(req, s, in.Host, "tells nothing of the machine", func(_ inventory.Host, d bmc.InventoryReader, _ inventory.BMC) error {
		noted, omitted := bmc.NoteOmissions(req)
		i, err := d.Inventory(noted)
		out = BMCInventory{Hardware: i.Hardware, Vendor: i.Vendor, Model: i.Model, Firmware: i.Firmware, LeftOut: omitted.Texts()}
		return err
	})
	return &rest.One[BMCInventory]{Body: out}, err
}

func (s *Server) bmcUsers(req *rest.Request, in *rest.HostRef) (*rest.One[rest.List[bmc.User]], error) {
	out := rest.List[bmc.User]{Items: []bmc.User{}}
	err := withBMC(req, s, in.Host, "has no accounts", func(_ inventory.Host, d bmc.UserManager, _ inventory.BMC) error {
		all, err := d.Users(req)
		out.Items = append(out.Items, all...)
		return err
	})
	return &rest.One[rest.List[bmc.User]]{Body: out}, err
}

func (s *Server) setBMCUser(req *rest.Request, in *userInput) (*rest.One[rest.List[bmc.User]], error) {
	out := rest.List[bmc.User]{Items: []bmc.User{}}
	err := withBMC(req, s, in.Host, "has no accounts", func(h inventory.Host, d bmc.UserManager, b inventory.BMC) error {
		if err := s.rest.Begun(req); err != nil {
			return err
		}
		done, err := changeUser(req, d, b, in.Body.User, in.Body.Password, in.Body.Remove)
		if err != nil {
			return err
		}
		if err := s.Note(req, h, "account "+in.Body.User+" of the controller "+done); err != nil {
			return err
		}
		all, err := d.Users(req)
		out.Items = append(out.Items, all...)
		return err
	})
	return &rest.One[rest.List[bmc.User]]{Body: out}, err
}

// changeUser makes an account as asked for, and says what was done to it.
func changeUser(ctx context.Context, d bmc.UserManager, b inventory.BMC, user, password string, isGone bool) (done string, err error) {
	if user == b.Username {
		return "", inventory.Errorf(inventory.Conflict, "%s is the account that we use ourselves", inventory.Clean(user, 64)).
			WithHint("change its password with: slipway bmc rotate; or name another account with: slipway bmc set")
	}
	if isGone == (password != "") {
		return "", inventory.Errorf(inventory.Invalid, "say what to do with the account").WithHint("give either a password or remove")
	}
	if isGone {
		return "deleted", d.DeleteUser(ctx, user)
	}
	all, err := d.Users(ctx)
	if err != nil {
		return "", err
	}
	for _, u := range all {
		if u.Name == user {
			return "has a new password", d.SetPassword(ctx, user, password)
		}
	}
	return "added", d.CreateUser(ctx, user, password)
}

func (s *Server) bmcMedia(req *rest.Request, in *rest.HostRef) (*rest.One[wire.BMCMedia], error) {
	var out wire.BMCMedia
	err := withBMC(req, s, in.Host, "has no virtual drive", func(_ inventory.Host, d bmc.MediaMounter, _ inventory.BMC) (err error) {
		out.URL, err = d.Media(req)
		return err
	})
	return &rest.One[wire.BMCMedia]{Body: out}, err
}

func (s *Server) setBMCMedia(req *rest.Request, in *mediaInput) (*rest.One[wire.BMCMedia], error) {
	url := in.Body.URL
	if err := rest.CheckURL("the image", url); err != nil {
		return nil, err
	}
	out := in.Body
	err := withBMC(req, s, in.Host, "has no virtual drive", func(h inventory.Host, d bmc.MediaMounter, _ inventory.BMC) error {
		did, act := "image ejected from the virtual drive", func() error { return d.EjectMedia(req) }
		if url != "" {
			did, act = "image put into the virtual drive", func() error { return d.InsertMedia(req, url) }
		}
		err := s.tell(req, h, did, act)
		if err == nil {
			out.URL, err = d.Media(req)
		}
		return err
	})
	return &rest.One[wire.BMCMedia]{Body: out}, err
}

func (s *Server) bmcBoot(req *rest.Request, in *rest.HostRef) (*rest.One[wire.BMCBoot], error) {
	var out wire.BMCBoot
	err := withBMC(req, s, in.Host, "cannot choose the boot device", func(_ inventory.Host, d bmc.Booter, _ inventory.BMC) error {
		b, err := d.Boot(req)
		out = wire.BMCBoot(b)
		return err
	})
	return &rest.One[wire.BMCBoot]{Body: out}, err
}

func (s *Server) setBMCBoot(req *rest.Request, in *bootInput) (*rest.One[wire.BMCBoot], error) {
	if err := rest.CheckURL("uri", in.Body.URI); err != nil {
		return nil, err
	}
	if in.Body.URI != "" && in.Body.Device != bmc.HTTP {
		return nil, inventory.Errorf(inventory.Invalid, "only the device http has a uri")
	}
	var out wire.BMCBoot
	err := withBMC(req, s, in.Host, "cannot choose the boot device", func(h inventory.Host, d bmc.Booter, _ inventory.BMC) error {
		err := s.tell(req, h, "boot device set to "+string(in.Body.Device), func() error { return d.SetBoot(req, bmc.Boot(in.Body)) })
		if err != nil {
			return err
		}
		b, err := d.Boot(req)
		out = wire.BMCBoot(b)
		return err
	})
	return &rest.One[wire.BMCBoot]{Body: out}, err
}

// resetBMC restarts the controller itself. Slipway knows only that it took the order: it is away for some minutes.
func (s *Server) resetBMC(req *rest.Request, in *rest.HostRef) (*struct{}, error) {
	return nil, withBMC(req, s, in.Host, "cannot be restarted by us", func(h inventory.Host, d bmc.ControllerResetter, _ inventory.BMC) error {
		return s.tell(req, h, "controller told to restart itself", func() error { return d.ResetController(req) })
	})
}

func (s *Server) rotateBMC(req *rest.Request, in *rest.HostRef) (*rest.One[inventory.Operation], error) {
	h, _, err := s.readBMC(req, in.Host)
	if err != nil {
		return nil, err
	}
	o, err := s.cfg.Engine.RotateBMC(req, h.ID, s.rest.Asker(req))
	return &rest.One[inventory.Operation]{ETag: rest.ETag(o.Version), Body: history.Told(o)}, err
}

// What these inputs ask for, in words.

func (in *mediaInput) Asked() string { return in.Body.URL }
func (in *bootInput) Asked() string  { return string(in.Body.Device) }

func (in *userInput) Asked() string {
	if in.Body.Remove {
		return "remove account " + in.Body.User
	}
	return "account " + in.Body.User
}
