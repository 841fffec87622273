package redfish

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// Parameters of InsertMedia (VirtualMedia schema). Image alone is required by the standard.
const (
	mediaImage    = "Image"
	mediaInserted = "Inserted"
	mediaReadOnly = "WriteProtected"
	mediaProtocol = "TransferProtocolType"
	mediaMethod   = "TransferMethod"
	mediaUser     = "UserName"
	mediaPassword = "Password"
	insertTries   = 5 // with what the controller says of each try
)

// insert inserts an image by the action. The ActionInfo, and the words of a refusal, tell what the controller takes. Each of at
// most insertTries tries changes the body by what the last refusal said. A controller may want a field and refuse it in turns,
// so that only this bound ends the loop.
func (d *driver) insert(ctx context.Context, v *slot, image *url.URL) error {
	known, err := d.parameters(ctx, v.Actions.Insert)
	if err != nil {
		return err
	}
	body := insertBody(image, v.Actions.Insert.Protocols, known)
	for n := 1; ; n++ {
		a, err := d.post(ctx, v.Actions.Insert.Target, body, "insert an image")
		// Only a 400 complains of the body. After any other answer the drive may hold the image, and a second order would fail.
		if err == nil || a == nil || a.status != http.StatusBadRequest || n >= insertTries {
			return err
		}
		if !amend(body, messages(a.body), image, allowed(mediaProtocol, v.Actions.Insert.Protocols, known)) {
			return err
		}
	}
}

// parameters reads the ActionInfo of an action; none where the controller has no such document.
func (d *driver) parameters(ctx context.Context, a action) ([]parameter, error) {
	if a.ActionInfo == "" {
		return nil, nil
	}
	var info struct{ Parameters []parameter }
	if err := d.read(ctx, a.ActionInfo, &info); err != nil {
		if ctx.Err() != nil || bmc.KindOf(err) == inventory.Unauthorized {
			return nil, err
		}
		return nil, nil // the words of its refusal name the missing argument
	}
	return info.Parameters, nil
}

// insertBody is what is sent first: what is usual, without what the controller does not know, and with what it requires.
func insertBody(image *url.URL, protocols []string, known []parameter) map[string]any {
	body := map[string]any{mediaImage: image.String(), mediaInserted: true, mediaReadOnly: true}
	if len(known) == 0 {
		return body
	}
	// What the controller does not list, it would refuse. An image alone is always right.
	for name := range body {
		if name != mediaImage && !slices.ContainsFunc(known, func(p parameter) bool { return p.Name == name }) {
			delete(body, name)
		}
	}
	for _, p := range known {
		if _, has := body[p.Name]; p.Required && !has {
			if value := valueOf(p.Name, image, allowed(p.Name, protocols, known)); value != nil {
				body[p.Name] = value
			}
		}
	}
	return body
}

// allowed returns the values that a parameter may have; none when the controller does not say.
func allowed(name string, protocols []string, known []parameter) []string {
	for _, p := range known {
		if p.Name == name && len(p.AllowableValues) > 0 {
			return p.AllowableValues
		}
	}
	if name == mediaProtocol {
		return protocols
	}
	return nil
}

// valueOf is what a parameter is given when the controller wants it; nil for what we do not know.
func valueOf(name string, image *url.URL, allowed []string) any {
	value := ""
	switch name {
	case mediaInserted, mediaReadOnly:
		return true
	case mediaProtocol:
		// The schema's words are HTTP and HTTPS, and the URL's scheme is in lower case.
		value = strings.ToUpper(image.Scheme)
	case mediaMethod:
		value = "Stream"
	case mediaUser, mediaPassword:
		return ""
	default:
		return nil
	}
	// The controller's own spelling counts, since it compares with case.
	for _, a := range allowed {
		if strings.EqualFold(a, value) {
			return a
		}
	}
	return value
}

// amend changes what is sent by what the controller complained of: it adds what is missing, and takes away what is not known.
// A refusal without such words leaves the image alone in the body. It reports false when there is nothing left to change.
func amend(body map[string]any, all []message, image *url.URL, protocols []string) bool {
	isChanged := false
	for _, m := range all {
		for _, name := range []string{mediaProtocol, mediaMethod, mediaInserted, mediaReadOnly, mediaUser, mediaPassword} {
			// MessageArgs name the parameter, plainly or as a JSON pointer. Older firmware has it in the text only.
			if !slices.Contains(m.Args, name) && !slices.Contains(m.Args, "#/"+name) && !strings.Contains(m.Message, name) {
				continue
			}
			_, has := body[name]
			switch {
			case !has && isMissing(m):
				body[name], isChanged = valueOf(name, image, protocols), true
			case has && !isMissing(m):
				delete(body, name)
				isChanged = true
			}
		}
	}
	if isChanged || len(body) == 1 {
		return isChanged
	}
	for name := range body {
		if isChanged = isChanged || name != mediaImage; name != mediaImage {
			delete(body, name)
		}
	}
	return isChanged
}

// isMissing reports whether a message complains of something that was not sent.
func isMissing(m message) bool {
	if says([]message{m}, "ActionParameterMissing", "PropertyMissing", "CreateFailedMissingReqProperties", "ParameterMissing") {
		return true
	}
	words := strings.ToLower(m.Message)
	return strings.Contains(words, "requires the parameter") || strings.Contains(words, "required") || strings.Contains(words, "missing") || strings.Contains(words, "must be included")
}
