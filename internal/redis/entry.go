package redis

// separator stands between the users of a journal entry. No user id has one:
// ids have no control characters.
const separator = "\n"
