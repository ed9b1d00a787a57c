package provision

// Why says what is waited for. Its text tells a person what to do.
type Why uint8

const (
	WhyNone       Why = iota
	WhyStore          // the API did not answer, or refused for the moment
	WhyRefused        // the API refuses what is to be written
	WhySettle         // a create may still land
	WhyCreate         // a create failed
	WhyDelete         // a delete failed
	WhyFetch          // the resource could not be read
	WhyLook           // a look failed
	WhyTemplate       // the id template fails
	WhyHold           // the record is not ours to act on
	WhyOwnerGone      // the API object vanished without passing our finalizer
	WhyTaken          // the name is taken in the backend and nothing proves that it is ours
	WhyNoWayAgain     // a create was not answered and there is no way to look
	WhyNoWay          // deletion needs a look and there is no way to look
	WhyShared         // another record holds the same id
	WhyUnproven       // the id came from elsewhere and nothing proves that it is ours
	WhyLost           // credentials are lost and can't be asked for again under the same id
	WhySpent          // the name was used before and is under a tombstone
	WhyRetained       // kept by policy
	WhyTombstone      // released, kept for what may arrive late
)

var whys = [...]struct {
	word, text string
	stuck      bool
}{
	WhyNone:       {"", "", false},
	WhyStore:      {"APIUnavailable", "the Kubernetes API did not take a read or a write; it is tried again", false},
	WhyRefused:    {"APIRefused", "the Kubernetes API refuses what is to be written; the message says why", true},
	WhySettle:     {"Settling", "an earlier create was not answered and may still land; waiting before the last look", false},
	WhyCreate:     {"CreateFailed", "the driver answered the create with an error", false},
	WhyDelete:     {"DeleteFailed", "the driver answered the delete with an error", false},
	WhyFetch:      {"LookupFailed", "the driver could not read the resource by its id", false},
	WhyLook:       {"LookFailed", "the driver could not look for the resource by its name", false},
	WhyTemplate:   {"TemplateFailed", "the id template gives no id for this name; mend --bucket-id-template or --account-id-template", true},
	WhyHold:       {"HandsOff", "the intent belongs to another cluster, object, driver or newer version; see custody intents explain", true},
	WhyOwnerGone:  {"OwnerGone", "the API object vanished without its finalizer being honoured; decide with custody intents resolve", true},
	WhyTaken:      {"NameTaken", "the name exists in the backend and nothing proves that it was made for this object", true},
	WhyNoWayAgain: {"NoWayToLook", "a create was not answered and this driver gives no way to look: declare --repeat-safe or an id template, or look by hand and use custody intents resolve --retry", true},
	WhyNoWay:      {"NoWayToLook", "a create was not answered and this driver gives no way to look before release: declare --repeat-safe or an id template, or look by hand and use custody intents resolve --release", true},
	WhyShared:     {"SharedID", "another intent holds the same id; neither deletes it; see custody intents explain", true},
	WhyUnproven:   {"Unproven", "the id was put into the object's status by something else and nothing proves that it is this object's; decide with custody intents resolve", true},
	WhyLost:       {"CredentialsLost", "the credentials are gone and the driver can't give them again under the same account; delete and make the access again", true},
	WhySpent:      {"NameSpent", "this name was deleted before and is under a tombstone; make a new claim", true},
	WhyRetained:   {"Retained", "kept in the backend by its deletion policy", false},
	WhyTombstone:  {"Released", "released; the name is watched for what may arrive late", false},
}

// String gives the reason word, as conditions and status.error carry it.
func (w Why) String() string {
	if int(w) < len(whys) {
		return whys[w].word
	}
	return "Unknown"
}

// Text says what happened and what to do next.
func (w Why) Text() string {
	if int(w) < len(whys) {
		return whys[w].text
	}
	return ""
}

// Stuck tells whether somebody has to decide or to mend something.
func (w Why) Stuck() bool { return int(w) < len(whys) && whys[w].stuck }

func (w Why) store() bool { return w == WhyStore || w == WhyRefused }
