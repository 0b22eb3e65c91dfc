//! The members of each result, by the schemas of 2025-06-18, 2025-11-25 and 2026-07-28. Where these differ, the most
//! permissive one counts.

use super::ResultKind;
use super::shape::{Member, Need, Shape};

const fn optional(name: &'static str, shape: Shape) -> Member {
    required(name, shape, Need::Optional)
}

const fn required(name: &'static str, shape: Shape, need: Need) -> Member {
    Member { name, shape, need }
}

const ANY_OBJECT: Shape = Shape::Object(&[]);
const META: Member = optional("_meta", ANY_OBJECT);
const TITLE: Member = optional("title", Shape::Text);
const DESCRIPTION: Member = optional("description", Shape::Text);
const MIME_TYPE: Member = optional("mimeType", Shape::Text);
const TTL: Member = optional("ttlMs", Shape::Size);
const CACHE: Member = optional("cacheScope", CACHE_SCOPE);
const CACHE_SCOPE: Shape = Shape::Word(&["public", "private", ""], "public or private");
const CURSOR: Member = optional("nextCursor", Shape::Opaque);

const ICON: Shape = Shape::Object(&[
    required("src", Shape::Text, Need::Vital),
    MIME_TYPE,
    optional("sizes", Shape::List(&Shape::Text)),
    optional("theme", Shape::Word(&["light", "dark"], "light or dark")),
]);
const ICONS: Member = optional("icons", Shape::List(&ICON));

const ANNOTATIONS: Member = optional(
    "annotations",
    Shape::Object(&[
        optional(
            "audience",
            Shape::List(&Shape::Word(&["user", "assistant"], "user or assistant")),
        ),
        optional("priority", Shape::Number),
        optional("lastModified", Shape::Text),
    ]),
);

const IMPLEMENTATION: Shape = Shape::Object(&[
    required("name", Shape::Text, Need::Text("")),
    TITLE,
    required("version", Shape::Text, Need::Text("")),
    DESCRIPTION,
    ICONS,
    optional("websiteUrl", Shape::Text),
]);

const LIST_CHANGED: Member = optional("listChanged", Shape::Flag);
const CAPABILITIES: Shape = Shape::Capability(&[
    optional("experimental", Shape::Map(&ANY_OBJECT)),
    optional("extensions", Shape::Map(&ANY_OBJECT)),
    optional("logging", Shape::Capability(&[])),
    optional("completions", Shape::Capability(&[])),
    optional("prompts", Shape::Capability(&[LIST_CHANGED])),
    optional(
        "resources",
        Shape::Capability(&[optional("subscribe", Shape::Flag), LIST_CHANGED]),
    ),
    optional("tools", Shape::Capability(&[LIST_CHANGED])),
]);

const INITIALIZE: Shape = Shape::Object(&[
    required("protocolVersion", Shape::Opaque, Need::Text("")),
    required("capabilities", CAPABILITIES, Need::Object),
    required("serverInfo", IMPLEMENTATION, Need::Object),
    optional("instructions", Shape::Text),
    META,
]);

const DISCOVER: Shape = Shape::Object(&[
    required("resultType", Shape::Text, Need::Text("complete")),
    required(
        "supportedVersions",
        Shape::List(&Shape::Opaque),
        Need::Vital,
    ),
    required("capabilities", CAPABILITIES, Need::Object),
    optional("instructions", Shape::Text),
    required("ttlMs", Shape::Size, Need::Zero),
    required("cacheScope", CACHE_SCOPE, Need::Text("private")),
    optional(
        "_meta",
        Shape::Object(&[optional(
            "io.modelcontextprotocol/serverInfo",
            IMPLEMENTATION,
        )]),
    ),
]);

const CONTENTS: Shape = Shape::AnyOf(
    &[
        required("uri", Shape::Text, Need::Text("")),
        MIME_TYPE,
        optional("text", Shape::Text),
        optional("blob", Shape::Text),
        META,
    ],
    &["text", "blob"],
    "contents with a text or a blob",
);

const MEDIA: &[Member] = &[
    required("data", Shape::Text, Need::Text("")),
    required("mimeType", Shape::Text, Need::Text("")),
    ANNOTATIONS,
    META,
];

const RESOURCE: &[Member] = &[
    required("uri", Shape::Text, Need::Vital),
    required("name", Shape::Text, Need::Text("")),
    TITLE,
    DESCRIPTION,
    MIME_TYPE,
    optional("size", Shape::Size),
    ICONS,
    ANNOTATIONS,
    META,
];

const CONTENT: Shape = Shape::Tagged(
    &[
        (
            "text",
            &[
                required("text", Shape::Text, Need::Vital),
                ANNOTATIONS,
                META,
            ],
        ),
        ("image", MEDIA),
        ("audio", MEDIA),
        (
            "resource",
            &[
                required("resource", CONTENTS, Need::Vital),
                ANNOTATIONS,
                META,
            ],
        ),
        ("resource_link", RESOURCE),
    ],
    "text, image, audio, resource or resource_link",
);

const COMPLETE: Member = optional(
    "resultType",
    Shape::Word(&["complete"], "a known type of result"),
);

const TOOL_RESULT: Shape = Shape::Object(&[
    COMPLETE,
    required("content", Shape::List(&CONTENT), Need::List),
    optional("structuredContent", Shape::Any),
    optional("isError", Shape::Flag),
    META,
]);

const PROMPT_RESULT: Shape = Shape::Object(&[
    COMPLETE,
    DESCRIPTION,
    required(
        "messages",
        Shape::List(&Shape::Object(&[
            required(
                "role",
                Shape::Word(&["user", "assistant"], "user or assistant"),
                Need::Vital,
            ),
            required("content", CONTENT, Need::Vital),
        ])),
        Need::List,
    ),
    META,
]);

const RESOURCE_RESULT: Shape = Shape::Object(&[
    COMPLETE,
    required("contents", Shape::List(&CONTENTS), Need::List),
    TTL,
    CACHE,
    META,
]);

const TOOL: Shape = Shape::Object(&[
    required("name", Shape::Text, Need::Vital),
    TITLE,
    DESCRIPTION,
    required("inputSchema", ANY_OBJECT, Need::Object),
    optional("outputSchema", ANY_OBJECT),
    optional(
        "annotations",
        Shape::Object(&[
            TITLE,
            optional("readOnlyHint", Shape::Flag),
            optional("destructiveHint", Shape::Flag),
            optional("idempotentHint", Shape::Flag),
            optional("openWorldHint", Shape::Flag),
        ]),
    ),
    ICONS,
    META,
]);

const PROMPT: Shape = Shape::Object(&[
    required("name", Shape::Text, Need::Vital),
    TITLE,
    DESCRIPTION,
    optional(
        "arguments",
        Shape::List(&Shape::Object(&[
            required("name", Shape::Text, Need::Vital),
            TITLE,
            DESCRIPTION,
            optional("required", Shape::Flag),
        ])),
    ),
    ICONS,
    META,
]);

const TEMPLATE: Shape = Shape::Object(&[
    required("uriTemplate", Shape::Text, Need::Vital),
    required("name", Shape::Text, Need::Text("")),
    TITLE,
    DESCRIPTION,
    MIME_TYPE,
    ICONS,
    ANNOTATIONS,
    META,
]);

const TOOLS: Shape = Shape::Object(&[
    COMPLETE,
    required("tools", Shape::List(&TOOL), Need::List),
    CURSOR,
    TTL,
    CACHE,
    META,
]);

const PROMPTS: Shape = Shape::Object(&[
    COMPLETE,
    required("prompts", Shape::List(&PROMPT), Need::List),
    CURSOR,
    TTL,
    CACHE,
    META,
]);

const RESOURCES: Shape = Shape::Object(&[
    COMPLETE,
    required(
        "resources",
        Shape::List(&Shape::Object(RESOURCE)),
        Need::List,
    ),
    CURSOR,
    TTL,
    CACHE,
    META,
]);

const TEMPLATES: Shape = Shape::Object(&[
    COMPLETE,
    required("resourceTemplates", Shape::List(&TEMPLATE), Need::List),
    CURSOR,
    TTL,
    CACHE,
    META,
]);

const INPUT_REQUIRED: Shape = Shape::Object(&[
    optional(
        "inputRequests",
        Shape::Map(&Shape::Object(&[
            required(
                "method",
                Shape::Word(
                    &["elicitation/create", "sampling/createMessage", "roots/list"],
                    "elicitation/create, sampling/createMessage or roots/list",
                ),
                Need::Vital,
            ),
            optional("params", ANY_OBJECT),
        ])),
    ),
    optional("requestState", Shape::Opaque),
    META,
]);

/// Returns the members of a result.
pub(super) fn of(kind: ResultKind) -> Shape {
    match kind {
        ResultKind::Initialize => INITIALIZE,
        ResultKind::Discover => DISCOVER,
        ResultKind::Tool => TOOL_RESULT,
        ResultKind::Prompt => PROMPT_RESULT,
        ResultKind::Resource => RESOURCE_RESULT,
        ResultKind::Tools => TOOLS,
        ResultKind::Prompts => PROMPTS,
        ResultKind::Resources => RESOURCES,
        ResultKind::Templates => TEMPLATES,
        ResultKind::InputRequired => INPUT_REQUIRED,
    }
}
