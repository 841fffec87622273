package redfishtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// change answers a PATCH.
func (s *Server) change(w http.ResponseWriter, r *http.Request, path string) {
	d := s.o.Dialect
	if _, ok := s.tree()[path]; !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if tag := s.tag(path); tag != "" {
		match := r.Header.Get("If-Match")
		same := strings.TrimPrefix(match, "W/") == strings.TrimPrefix(tag, "W/")
		switch {
		case match == "" && d.RequiresMatch:
			complain(w, http.StatusPreconditionRequired, "Base.1.8.PreconditionRequired", "The request did not provide the required precondition.")
			return
		case match != "" && match != "*" && (!same || d.WantsStrongTags && strings.HasPrefix(match, "W/")):
			complain(w, http.StatusPreconditionFailed, "Base.1.18.PreconditionFailed", "The ETag supplied did not match the ETag required to change this resource.")
			return
		}
	}
	var in doc
	if json.NewDecoder(r.Body).Decode(&in) != nil {
		complain(w, http.StatusBadRequest, "Base.1.8.MalformedJSON", "The request body could not be read.")
		return
	}
	if id, ok := strings.CutPrefix(path, v1+"/AccountService/Accounts/"); ok {
		s.changeAccount(w, id, in)
		return
	}
	for _, b := range s.boxes {
		switch at := s.systemPath(b); {
		case path == at || path == at+"/SD":
			s.changeSystem(w, b, in, path != at)
			return
		case strings.Contains(path, "/VirtualMedia/") && d.MediaByPatch:
			id := path[strings.LastIndexByte(path, '/')+1:]
			image, _ := in["Image"].(string)
			s.insert(w, b, id, image)
			return
		}
	}
	w.WriteHeader(http.StatusMethodNotAllowed)
}

func (s *Server) changeSystem(w http.ResponseWriter, b *box, in doc, isSettings bool) {
	d := s.o.Dialect
	if lit, ok := in["LocationIndicatorActive"].(bool); ok && d.LED == "active" {
		b.isLit = lit
	}
	if led, ok := in["IndicatorLED"].(string); ok && d.LED == "indicator" {
		b.isLit = led != "Off"
	}
	if boot, ok := in["Boot"].(map[string]any); ok {
		if d.BootInSettings != isSettings {
			complain(w, http.StatusBadRequest, "Ami.1.0.OperationSupportedInFutureStateURI", "Support of this Operation for Boot Properties is moved to FutureState URI")
			return
		}
		if !s.changeBoot(w, b, boot) {
			return
		}
	}
	b.rev++
	w.WriteHeader(http.StatusNoContent)
}

// changeBoot takes an override, or says why not.
func (s *Server) changeBoot(w http.ResponseWriter, b *box, in doc) bool {
	d := s.o.Dialect
	text := func(key string) string { v, _ := in[key].(string); return v }
	target, enabled, mode := text("BootSourceOverrideTarget"), text("BootSourceOverrideEnabled"), text("BootSourceOverrideMode")
	refuse := func(id, why string) bool {
		complain(w, http.StatusBadRequest, id, why)
		return false
	}
	_, hasURI := in["HttpBootUri"]
	switch {
	case b.posts > 0:
		b.posts--
		return refuse("iLO.2.37.UnableToModifyDuringSystemPOST", "")
	case target != "" && !slices.Contains(d.Targets, target):
		return refuse("Base.1.8.PropertyValueNotInList", "The value "+target+" for the property BootSourceOverrideTarget is not in the list of acceptable values.")
	case mode != "" && d.RefusesMode:
		return refuse("Base.1.4.PropertyNotWritable", "The property BootSourceOverrideMode is a read only property and cannot be assigned a value.")
	case mode == "" && d.RequiresMode:
		return refuse("Base.1.8.PropertyMissing", "The property BootSourceOverrideMode is a required property and must be included in the request.")
	case enabled == "Disabled" && target == "None" && d.RefusesClearToNone:
		return refuse("iLO.2.37.InvalidOperationForTarget", "")
	case enabled == "Once" && d.RefusesOnceInUEFI && b.boot.Mode == "UEFI":
		return refuse("IDRAC.1.6.SYS444", "Unable to set the attribute value because it depends on other attribute(s).")
	case hasURI && !d.HasHTTPBootURI:
		return refuse("Base.1.8.PropertyUnknown", "The property HttpBootUri is not in the list of valid properties for the resource.")
	}
	if s.o.ForgetsBoot {
		return true
	}
	if target != "" {
		b.boot.Target = target
	}
	if mode != "" {
		b.boot.Mode = mode
	} else if d.ForgetsMode {
		b.boot.Mode = "Legacy"
	}
	if enabled == "" && d.RefusesOnceInUEFI && target != "None" {
		enabled = "Once"
	}
	if enabled != "" {
		b.enabled = enabled
	}
	b.boot.URI, b.path = text("HttpBootUri"), text("UefiTargetBootSourceOverride")
	return true
}

// act answers a POST.
func (s *Server) act(w http.ResponseWriter, r *http.Request, path string) {
	d := s.o.Dialect
	if r.Header.Get("If-Match") != "" && d.RefusesMatchOnActions {
		complain(w, http.StatusPreconditionFailed, "Base.1.18.PreconditionFailed", "The ETag supplied did not match the ETag required to change this resource.")
		return
	}
	var in doc
	if json.NewDecoder(r.Body).Decode(&in) != nil {
		complain(w, http.StatusBadRequest, "Base.1.8.MalformedJSON", "The request body could not be read.")
		return
	}
	if path == v1+"/AccountService/Accounts" {
		s.addAccount(w, in)
		return
	}
	if strings.HasSuffix(path, "/Actions/LogService.ClearLog") {
		s.cleared = true
		w.WriteHeader(http.StatusNoContent)
		return
	}
	for _, b := range s.boxes {
		if path == s.systemPath(b)+"/Actions/ComputerSystem.Reset" {
			kind, _ := in["ResetType"].(string)
			s.reset(w, b, kind)
			return
		}
		rest, ok := strings.CutPrefix(path, s.systemPath(b)+"/VirtualMedia/")
		if !ok {
			rest, ok = strings.CutPrefix(path, s.managerPath()+"/VirtualMedia/")
		}
		if id, what, _ := strings.Cut(rest, "/Actions/VirtualMedia."); ok && !d.MediaByPatch && slices.Contains(d.Drives, id) {
			image, _ := in["Image"].(string)
			if what == "InsertMedia" && d.ImageOnly && len(in) > 1 {
				complain(w, http.StatusBadRequest, "Base.1.4.PropertyUnknown", "The property Inserted is not in the list of valid properties for the resource.")
				return
			}
			s.insert(w, b, id, image)
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
}

// insert puts an image into a drive, or takes it out.
func (s *Server) insert(w http.ResponseWriter, b *box, id, image string) {
	d := s.o.Dialect
	if image != "" && b.isIn[id] {
		complain(w, http.StatusConflict, "Base.1.8.ResourceInUse", "The drive holds an image.")
		return
	}
	if d.Name == XCC.Name && !strings.HasPrefix(id, "EXT") {
		complain(w, http.StatusBadRequest, "Base.1.8.PropertyNotWritable", "The drive takes no URL.")
		return
	}
	if image == "" && !b.isIn[id] {
		complain(w, http.StatusBadRequest, "Base.1.8.ActionNotSupported", "The action VirtualMedia.EjectMedia is not supported by the resource.")
		return
	}
	if err := b.Machine.Insert(image); err != nil {
		complain(w, http.StatusInternalServerError, "Base.1.8.InternalError", err.Error())
		return
	}
	if b.isIn[id] = image != ""; b.isIn[id] {
		b.images[id] = image
	}
	b.rev++
	w.WriteHeader(http.StatusNoContent)
}

// reset carries out a reset type, if it is one.
func (s *Server) reset(w http.ResponseWriter, b *box, kind string) {
	d := s.o.Dialect
	if !slices.Contains(d.ResetTypes, kind) {
		complain(w, http.StatusBadRequest, "Base.1.8.ActionParameterValueNotInList", "The value "+kind+" for the parameter ResetType is not in the list of acceptable values.")
		return
	}
	on, err := b.Machine.IsOn()
	if err != nil {
		complain(w, http.StatusInternalServerError, "Base.1.8.InternalError", err.Error())
		return
	}
	order, ok := orderOf(kind, on)
	if !ok || d.ConflictsWhenSame && (order == On && on || (order == Off || order == Shutdown || order == Reset) && !on) {
		complain(w, http.StatusConflict, "IDRAC.2.1.PSU501", "Server is already powered ON or OFF.")
		return
	}
	if err := s.carryOut(b, order, on); err != nil {
		complain(w, http.StatusInternalServerError, "Base.1.8.InternalError", err.Error())
		return
	}
	b.rev++
	w.WriteHeader(http.StatusNoContent)
}

func orderOf(kind string, on bool) (Order, bool) {
	switch kind {
	case "On", "ForceOn":
		return On, true
	case "ForceOff":
		return Off, true
	case "GracefulShutdown":
		return Shutdown, true
	case "PowerCycle":
		return Cycle, on
	case "ForceRestart", "GracefulRestart":
		return Reset, true
	case "PushPowerButton":
		if on {
			return Shutdown, true
		}
		return On, true
	}
	return "", false
}

// carryOut gives the order to the machine, and uses up an override for one boot.
func (s *Server) carryOut(b *box, o Order, on bool) error {
	if o == On && on || o != On && !on {
		return nil
	}
	boots := o == On || o == Cycle || o == Reset
	if boots && b.enabled != "Disabled" {
		if err := b.Machine.SetBoot(b.boot); err != nil {
			return err
		}
	}
	if err := b.Machine.Do(o); err != nil {
		return err
	}
	to := boots
	b.heading = &to
	if !boots {
		return nil
	}
	b.posts = s.o.Dialect.POSTs
	if b.enabled != "Once" {
		return nil
	}
	b.enabled, b.boot.Target, b.boot.URI, b.path = "Disabled", "None", "", ""
	return b.Machine.SetBoot(Boot{})
}

func (s *Server) addAccount(w http.ResponseWriter, in doc) {
	if s.o.Dialect.AccountSlots > 0 {
		complain(w, http.StatusMethodNotAllowed, "Base.1.8.OperationNotAllowed", "The HTTP method is not allowed on this resource.")
		return
	}
	s.accountN++
	id := fmt.Sprint(s.accountN)
	s.accounts = append(s.accounts, account{id: id})
	s.changeAccount(w, id, in)
}

func (s *Server) changeAccount(w http.ResponseWriter, id string, in doc) {
	for i := range s.accounts {
		a := &s.accounts[i]
		if a.id != id {
			continue
		}
		if v, ok := in["UserName"].(string); ok {
			a.name = v
		}
		if v, ok := in["Password"].(string); ok {
			a.password = v
		}
		if v, ok := in["RoleId"].(string); ok {
			a.role = v
		}
		if v, ok := in["Enabled"].(bool); ok {
			a.enabled = v
		}
		s.boxes[0].rev++
		reply(w, http.StatusOK, doc{"Id": id})
		return
	}
	w.WriteHeader(http.StatusNotFound)
}

// remove answers a DELETE.
func (s *Server) remove(w http.ResponseWriter, path string) {
	if id, ok := strings.CutPrefix(path, sessionsPath+"/"); ok {
		for token, at := range s.sessions {
			if at == id {
				delete(s.sessions, token)
			}
		}
		w.WriteHeader(http.StatusNoContent)
		return
	}
	id, ok := strings.CutPrefix(path, v1+"/AccountService/Accounts/")
	if !ok || s.o.Dialect.AccountSlots > 0 {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	s.accounts = slices.DeleteFunc(s.accounts, func(a account) bool { return a.id == id })
	w.WriteHeader(http.StatusNoContent)
}
