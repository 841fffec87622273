package redfish

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
)

// message is one entry of a Redfish error (DSP0266, error responses).
type message struct {
	MessageID string `json:"MessageId"`
	Message   string
	Args      []string `json:"MessageArgs"`
}

// messages returns what a body complains about; iLO sends ids without words.
func messages(body []byte) []message {
	var doc struct {
		Error struct {
			Code    string    `json:"code"`
			Message string    `json:"message"`
			Info    []message `json:"@Message.ExtendedInfo"`
		} `json:"error"`
	}
	if decode(body, &doc) != nil {
		return nil
	}
	if len(doc.Error.Info) == 0 && doc.Error.Code+doc.Error.Message != "" {
		return []message{{MessageID: doc.Error.Code, Message: doc.Error.Message}}
	}
	// A controller may list a message for each of hundreds of properties. The first ones say enough.
	return doc.Error.Info[:min(len(doc.Error.Info), 8)]
}

// complaint is the first message in words. It hides secrets before it shortens the text; otherwise half of one would
// stay.
func (c *connection) complaint(all []message) string {
	for _, m := range all {
		if text := clean(c.hide(m.Message)); text != "" {
			return text
		}
	}
	for _, m := range all {
		if m.MessageID != "" {
			return clean(c.hide(m.MessageID))
		}
	}
	return ""
}

// says reports whether one of the messages has an id that ends so; versions and registries differ.
func says(all []message, ids ...string) bool {
	return slices.ContainsFunc(all, func(m message) bool {
		return slices.ContainsFunc(ids, func(id string) bool { return m.MessageID == id || strings.HasSuffix(m.MessageID, "."+id) })
	})
}

// The messages that outweigh the status they come with.
var (
	// Not now, whatever the status: iLO answers 400 while the firmware starts
	// (github.com/ironcore-dev/metal-operator/issues/997), and while it looks for disks
	// (github.com/bb-Ricardo/check_redfish/issues/170).
	notNow = []string{
		"UnableToModifyDuringSystemPOST", "ResourceNotReadyRetry", "ServiceTemporarilyUnavailable", "ServiceShuttingDown",
		"ServiceInUnknownState", "ResourceInUse", "ResourceInStandby", "InternalError", "UnavailableDuringPOST",
	}
	// No session is free: iDRAC answers 503 with RAC0218 (github.com/bb-Ricardo/check_redfish/issues/89).
	noSession = []string{"SessionLimitExceeded", "RAC0218", "CreateLimitReachedForResource", "SessionTypeNotSupported"}
	// Wrong user or password, which iLO says with 400.
	badLogin = []string{"UnauthorizedLoginAttempt", "ResourceAtUriUnauthorized", "NoValidSession", "AccountLocked"}
	// The vendor wants more money first.
	noLicense = []string{"LicenseKeyRequired", "LicenseRequired", "LIC501", "InsufficientLicense", "NotApplicableLicense"}
)

// fault turns an answer that is no success into an error. what names the order. The messages in the body come before
// the status: vendors agree on them more than on status codes.
func (c *connection) fault(a *answer, what string) *inventory.Error {
	all := messages(a.body)
	said := c.complaint(all)
	if said != "" {
		said = ": " + said
	}
	status := strings.TrimSpace(strconv.Itoa(a.status) + " " + http.StatusText(a.status))
	e := func(kind inventory.Kind, format string, args ...any) *inventory.Error {
		return inventory.Errorf(kind, "the controller at %s %s", c.host(), fmt.Sprintf(format, args...)+said)
	}
	switch {
	// The order of the cases matters. A licence, a forced change of the password and a start of the firmware come with 400, 401,
	// 403 or 503 in all combinations, so that the ids must be judged before any status.
	case says(all, noLicense...):
		return e(inventory.Invalid, "wants a licence for %s", what)
	case says(all, "PasswordChangeRequired"):
		return e(inventory.Unauthorized, "wants the password of %s changed first", c.name()).WithHint("give the account a password of your own at the controller")
	case a.status == http.StatusUnauthorized || says(all, badLogin...):
		return e(inventory.Unauthorized, "refuses %s", c.name()).WithHint("check the BMC's user name and password")
	case a.status == http.StatusForbidden || says(all, "InsufficientPrivilege"):
		return e(inventory.Unauthorized, "does not allow %s to %s", c.name(), what).WithHint("use an account that is an administrator")
	case says(all, notNow...):
		return e(inventory.Unavailable, "is not ready to %s (%s)", what, status).WithHint("it answers that while the machine starts; try again")
	case a.status == http.StatusNotFound || a.status == http.StatusGone:
		return e(inventory.NotFound, "has no %s", clean(a.path))
	case a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable:
		return e(inventory.Unavailable, "is busy (%s)", status).WithHint("%s", retryHint(a.header.Get("Retry-After")))
	case a.status == http.StatusPreconditionFailed || a.status == http.StatusPreconditionRequired || a.status == http.StatusConflict:
		return e(inventory.Unavailable, "did not %s (%s)", what, status).WithHint("something else changes it at the same time; try again")
	case a.status == http.StatusNotImplemented || a.status == http.StatusMethodNotAllowed:
		return e(inventory.Invalid, "cannot %s (%s)", what, status)
	case a.status >= 500 || a.status == http.StatusRequestTimeout || a.status == http.StatusTooEarly:
		return e(inventory.Unavailable, "did not %s (%s)", what, status).WithHint("if it stays so, reset the controller")
	case a.status >= 300 && a.status < 400:
		return e(inventory.Invalid, "sends %s elsewhere (%s)", what, status).WithHint("use the address it sends to")
	}
	return e(inventory.Invalid, "refuses to %s (%s)", what, status)
}

// retryHint puts Retry-After into words. Seconds only: a date would need the controller's clock.
func retryHint(after string) string {
	if n, err := strconv.Atoi(after); err == nil && n > 0 && n < 24*3600 {
		return "it asks to be left alone for " + inventory.Duration(time.Duration(n)*time.Second).String()
	}
	return "try again in a minute"
}

// unreached turns what went wrong on the way to the controller into an error.
func (c *connection) unreached(ctx context.Context, err error) *inventory.Error {
	var (
		elsewhere *redirectError
		cert      *tls.CertificateVerificationError
		pin       *pinError
	)
	var refused *egress.Refused
	switch {
	case errors.As(err, &refused):
		return inventory.Errorf(inventory.Invalid, "the controller at %s gets no request: %s", c.host(), refused).WithHint(egress.AllowHint)
	case errors.As(err, &elsewhere):
		return inventory.Errorf(inventory.Invalid, "the controller at %s redirects %s", c.host(), elsewhere.Error()).WithHint("use the address of the controller itself")
	case errors.As(err, &pin):
		return inventory.Errorf(inventory.Invalid, "the controller at %s shows another certificate than the one that was pinned", c.host()).
			WithHint("if it was replaced, pin its new fingerprint: %s", pin.got)
	case errors.As(err, &cert):
		hint := "pin the fingerprint of its certificate"
		if len(cert.UnverifiedCertificates) > 0 {
			hint += ", if this is it: " + fingerprint(cert.UnverifiedCertificates[0].Raw)
		}
		return &inventory.Error{
			Kind: inventory.Invalid, Msg: fmt.Sprintf("the certificate of the controller at %s is not trusted", c.host()), Hint: hint, Err: plain(err),
		}
	case errors.Is(err, errTooLarge):
		return inventory.Errorf(inventory.Unavailable, "the controller at %s sends more than %d MiB for one document", c.host(), maxBody>>20).WithHint("reset the controller")
	}
	return bmc.Silent(fmt.Sprintf("the controller at %s does not answer", c.host()), "check its address, its network cable, and whether it speaks http or https; one that hangs needs a reset", err)
}

// plain keeps a cause's words for the log, cleaned: they can hold what the controller sent.
func plain(err error) error { return errors.New(inventory.Clean(err.Error(), 400)) }

// fingerprint is in the form that a target's own fingerprint has, so that an admin can paste it.
func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// hide takes passwords and tokens out of a text, the longest first, for one may begin another.
func (c *connection) hide(s string) string {
	c.mu.Lock()
	secrets := append([]string{c.password, c.basic(), c.token}, c.secrets...)
	c.mu.Unlock()
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range secrets {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, "***")
		}
	}
	return s
}

// safe removes passwords and tokens from an error, whatever way they came into it: controllers repeat what they
// receive. Every exported method defers it.
func (c *connection) safe(err *error) {
	var e *inventory.Error
	if !errors.As(*err, &e) {
		return
	}
	r := *e
	r.Msg, r.Hint = c.hide(e.Msg), c.hide(e.Hint)
	if e.Err != nil {
		r.Err = errors.New(c.hide(e.Err.Error()))
	}
	*err = &r
}
