package room

// SameSite says in which requests that other sites bring about browsers send a cookie
// along (RFC 6265bis, section 5.6.7).
type SameSite string

// Values of SameSite.
const (
	// SameSiteAuto is None where the cookie is Secure, else Lax. So visitors come back
	// with their pass from a payment service, and in frames of other sites, wherever
	// browsers allow it. The empty SameSite is the same.
	SameSiteAuto   SameSite = "auto"
	SameSiteLax    SameSite = "lax"    // links to the site, and requests of its own pages
	SameSiteNone   SameSite = "none"   // all; Lax where the cookie is not Secure
	SameSiteStrict SameSite = "strict" // requests of its own pages alone
)

// Secure says whether a cookie travels over TLS alone.
type Secure string

// Values of Secure.
const (
	SecureAuto   Secure = "auto"   // where the visitor's side is TLS; the empty Secure is the same
	SecureAlways Secure = "always" // also where nobody says that it is
	SecureNever  Secure = "never"
)

// CookieAttributes say how browsers treat the cookie that a pass is in. The zero
// value goes by the visitor's connection.
type CookieAttributes struct {
	SameSite SameSite
	Secure   Secure
	// Partitioned has browsers keep a cookie for each site that shows this one in a
	// frame (CHIPS), which they do where they refuse it otherwise. Only a Secure
	// cookie has it.
	Partitioned bool
}

// cookie refuses what no browser would keep, or send.
func (c *checks) cookie(a *CookieAttributes) {
	const prefix = "cookie-attributes."
	if a.SameSite != "" {
		c.oneOf(prefix+"samesite", string(a.SameSite), string(SameSiteAuto), string(SameSiteLax), string(SameSiteNone), string(SameSiteStrict))
	}
	if a.Secure != "" {
		c.oneOf(prefix+"secure", string(a.Secure), string(SecureAuto), string(SecureAlways), string(SecureNever))
	}
	if a.Secure == SecureNever && a.SameSite == SameSiteNone {
		c.problem(prefix+"samesite", `browsers drop a cookie with SameSite=None that is not Secure; take "secure: auto" or "secure: always" with it, or "samesite: lax"`)
	}
	switch {
	case !a.Partitioned:
	case a.Secure == SecureNever:
		c.problem(prefix+"partitioned", `browsers drop a Partitioned cookie that is not Secure; take "secure: auto" or "secure: always" with it`)
	case a.SameSite == SameSiteLax, a.SameSite == SameSiteStrict:
		c.problem(prefix+"partitioned", `a cookie with SameSite=`+string(a.SameSite)+` is not sent from frames of other sites, which Partitioned is for; take "samesite: auto" or "samesite: none" with it`)
	}
}
