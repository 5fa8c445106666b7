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

// Binding says what of a visitor has to stay the same for a pass to count. Who shows a
// pass from elsewhere is new, and so is who got another address or browser meanwhile. The
// zero value asks for nothing.
type Binding struct {
	Address   bool // the network that the visitor is in
	UserAgent bool // what the browser says it is
	// IPv4Prefix and IPv6Prefix are how many bits of an address are its network, 8 to
	// 32 and 16 to 64. Zero is 24 and 48.
	IPv4Prefix, IPv6Prefix int
}

// Defaults of a Binding.
const (
	DefaultIPv4Prefix = 24
	DefaultIPv6Prefix = 48
)

// cookie refuses what no browser would keep, or send.
func (c *checks) cookie(a *CookieAttributes) {
	const prefix = "cookie-attributes."
	judge(c, prefix, CookieFields, a)
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
